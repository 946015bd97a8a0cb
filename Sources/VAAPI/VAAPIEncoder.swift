import CVA
public import Media

/// H.264 by a GPU through libva: one access unit out for each frame in, IDR and P pictures, each P with the picture
/// before it as its one reference.
///
/// A driver checks next to nothing of what it is told, so everything that it makes is looked at: a picture without the
/// slices that were asked for is an error, never passed on. After any error the next picture is an IDR.
public final class VAAPIEncoder: StagedVideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands.

  /// What it makes.
  public private(set) var configuration: EncoderConfiguration
  /// What it is, for a person: the driver, the entry point, the rate control.
  public private(set) var name: String
  /// The parameter sets of what it delivers; where the driver writes its own, they are known after ``prepare()``.
  public private(set) var parameterSets: ParameterSets {
    didSet { setUnits = SetUnits(parameterSets) }
  }
  /// Frames imported, copied, and encoded again because they did not fit.
  public private(set) var counters = EncoderCounters()
  /// What the driver says of the entry point in use.
  public var capabilities: VAAPICapabilities.Encoder { stream.offer }

  /// The orientations that the driver's video processing lays frames by, as it was seen to do.
  public var turns: OrientationSet { session?.turning?.orientations ?? [] }

  private let node: RenderNode
  private let isToTurn: Bool
  private var session: EncodingSession?
  private var stream: StreamParameters
  private var setUnits: SetUnits
  private var quantizerControl: QuantizerControl
  /// What the driver writes, where it writes its own.
  private var driverSets: DriverParameterSets?

  private var isPrepared = false
  private var needsKeyFrame = true
  /// Whether the driver is to be told of the rate with the next picture.
  private var isRateStale = false
  private var position = PicturePosition()
  /// Which of the two reconstructed surfaces the last picture is in.
  private var referenceIndex = 0
  private var loaded = Loaded.nothing
  private var timestamp = MediaTime.zero
  private var captured = MediaTime.zero

  /// What the next picture is made from.
  private enum Loaded {
    case nothing
    /// It is in the mapped surface.
    case copy
    /// It is in the mapped surface that pictures are turned from.
    case turnedCopy(Orientation)
    /// The driver is to read it where it is; the planes are for the case that it cannot.
    case buffer(DMABuffer, descriptor: CInt?, Orientation)
  }

  /// Opens the driver of the render node at the path `node` for `configuration`.
  ///
  /// - Parameters:
  ///   - configuration: what it is to make.
  ///   - node: the path of the render node, `/dev/dri/renderD128`.
  ///   - turns: whether frames may come that are to be laid yet (``/Media/Frame/orientation``), and the driver's video
  ///     processing is to do that. ``turns`` says what it does.
  /// - Throws: ``/Media/EncoderError``: an impossible value, no such node, no permission, a driver without what is
  ///   needed, or the call of libva's that failed.
  public init(_ configuration: EncoderConfiguration, node: String, turns: Bool = false) throws(EncoderError) {
    try configuration.check()
    if let quality = configuration.vaapiQuality, quality < 1 {
      throw .configuration("a VA-API quality level of \(quality): choose 1 for the best, or more for faster ones")
    }
    guard configuration.sliceBytes == nil else {
      throw .unavailable("slices of a size in bytes (--slice-size) are x264's alone; VA-API counts rows (--slices)")
    }
    guard configuration.refreshFrames == nil else {
      throw .unavailable("pictures refreshed column by column (--intra-refresh) are x264's alone")
    }
    self.node = RenderNode(path: node)
    isToTurn = turns
    let session = try EncodingSession.open(configuration, node: self.node, turns: turns)
    let stream = try StreamParameters(configuration, session)
    name = stream.name
    parameterSets = stream.parameterSets
    setUnits = SetUnits(stream.parameterSets)
    quantizerControl = QuantizerControl(configuration)
    self.stream = stream
    self.configuration = configuration
    self.session = session
  }

  /// Frees everything that the driver holds.
  public func stop() {
    session = nil
    loaded = .nothing
  }

  /// Encodes two grey pictures and looks at what comes out: an IDR of the right size that starts with the first
  /// macroblock, then a P picture. Where the entry point does not do it, though the driver has made everything that it
  /// takes, the other one is tried.
  ///
  /// - Throws: ``/Media/EncoderError``: it is stopped, a call of libva's failed, or what came out is not what was asked
  ///   for.
  public func prepare() throws(EncoderError) {
    guard session != nil else { throw .stopped }
    guard !isPrepared else { return }
    // Whatever was loaded before is overwritten.
    loaded = .nothing
    do throws(EncoderError) {
      try tryOut()
    } catch {
      // A driver that is open twice may run out of what there is once.
      session = nil
      let failed = stream.offer.entryPoint
      // The first failure is the one to tell: that there is no second entry point is the usual case.
      guard let second = try? EncodingSession.open(configuration, node: node, turns: isToTurn, without: failed) else {
        throw error
      }
      stream = try StreamParameters(configuration, second)
      name = stream.name
      parameterSets = stream.parameterSets
      session = second
      do throws(EncoderError) { try tryOut() } catch _ { throw error }
    }
    // The grey pictures cost nothing: they say nothing of real ones.
    quantizerControl = QuantizerControl(configuration)
    counters = EncoderCounters()
    needsKeyFrame = true
    isPrepared = true
  }

  private func tryOut() throws(EncoderError) {
    guard let session else { throw .stopped }
    for isIDR in [true, false] {
      try session.upload.map()
      session.upload.fill(luma: isIDR ? 128 : 120)
      let surface = try session.upload.finish()
      try encode(surface, session, isIDR: isIDR)
      defer { session.coded.release() }
      if isIDR { try examine(session) }
    }
  }

  /// Encodes `frame`; see ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError``: it is stopped, the frame is not what was agreed, a call of libva's failed, or
  ///   what came out is not what was asked for.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    try mapInput()
    try load(frame)
    do throws(EncoderError) {
      try encodeLoaded(keyFrame: keyFrame) { sink.take($0) }
    } catch {
      guard case .importRefused = error else { throw error }
      try load(frame)
      try encodeLoaded(keyFrame: keyFrame) { sink.take($0) }
    }
  }

  /// Maps the next input surface.
  ///
  /// - Throws: ``/Media/EncoderError``: it is stopped, or a call of libva's failed.
  public func mapInput() throws(EncoderError) {
    guard let packed = session?.packed else { throw .stopped }
    // Without packed headers the parameter sets are the driver's, and not known before something was encoded.
    if !isPrepared, !packed.contains(.sequence) { try prepare() }
    guard let session else { throw .stopped }
    try session.upload.map()
    guard let turning = session.turning, !turning.orientations.isEmpty else { return }
    do throws(EncoderError) { try turning.input.map() } catch { turning.giveUp(error) }
  }

  /// Copies `frame` into the mapped surface; see ``/Media/StagedVideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError/frameSize(_:expected:)``, ``/Media/EncoderError/frameRows(_:least:)``,
  ///   ``/Media/EncoderError/notTurned(_:reason:)``, ``/Media/EncoderError/order(call:needs:)`` without ``mapInput()``,
  ///   or ``/Media/EncoderError/stopped``.
  public func load(_ frame: borrowing Frame) throws(EncoderError) {
    guard let session else { throw .stopped }
    let (planes, orientation) = (frame.planes, frame.orientation)
    try frame.check(for: configuration.size)
    guard orientation == .upright || turns.contains(orientation) else {
      throw .notTurned(orientation, reason: session.turning?.failure ?? "the driver does not turn pictures")
    }
    guard session.upload.isMapped else { throw .order(call: "load(_:)", needs: "mapInput()") }
    timestamp = frame.timestamp
    captured = frame.captured
    let imports = session.imports(for: orientation)
    if let buffer = frame.dmaBuffer, imports.accepts(buffer) {
      loaded = .buffer(buffer, descriptor: imports.descriptor(for: buffer), orientation)
    } else if let turning = session.turning, orientation != .upright {
      turning.input.copyCorner(planes)
      loaded = .turnedCopy(orientation)
    } else {
      session.upload.copy(planes)
      loaded = .copy
    }
  }

  /// Encodes what was loaded; see ``/Media/StagedVideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError``: nothing was loaded, it is stopped, a call of libva's failed, or what came out
  ///   is not what was asked for.
  public func encodeLoaded(keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard let session else { throw .stopped }
    let source = loaded
    loaded = .nothing
    let isIDR = keyFrame || needsKeyFrame || position.orderCount >= PicturePosition.orderCountLimit
    var (isImported, isTurned) = (false, false)
    switch source {
    case .nothing: throw .order(call: "encodeLoaded(keyFrame:deliver:)", needs: "load(_:)")
    case .copy: try encode(try session.upload.finish(), session, isIDR: isIDR)
    case .turnedCopy(let orientation):
      try encode(try session.turnedCopy(by: orientation), session, isIDR: isIDR)
      isTurned = true
    case .buffer(let buffer, let descriptor, let orientation):
      guard let source = session.imports(for: orientation).surface(for: buffer, descriptor) else {
        throw .importRefused(library: "VA-API")
      }
      let surface = try session.turned(source, by: orientation)
      do throws(EncoderError) {
        try encode(surface, session, isIDR: isIDR)
      } catch {
        // A driver may import what it cannot encode from; once it could, the failure is another one.
        guard counters.imported == 0, orientation == .upright else { throw error }
        session.imports.giveUp()
        throw .importRefused(library: "VA-API")
      }
      (isImported, isTurned) = (true, orientation != .upright)
    }
    let coded = session.coded
    if isIDR, !session.packed.contains(.sequence) { try checkDriverSets(session) }
    if isImported { counters.imported += 1 } else { counters.copied += 1 }
    if isTurned { counters.turned += 1 }
    if isIDR {
      deliver(
        AccessUnit(
          nalUnits: coded.nalUnits(after: setUnits.sequence, setUnits.picture), isKeyFrame: true,
          timestamp: timestamp, captured: captured))
    } else {
      deliver(
        AccessUnit(nalUnits: coded.nalUnits, isKeyFrame: false, timestamp: timestamp, captured: captured))
    }
    coded.release()
  }

  /// Tells the driver with the next picture.
  ///
  /// - Throws: ``/Media/EncoderError/configuration(_:)`` for an impossible value, or ``/Media/EncoderError/stopped``.
  public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    guard session != nil else { throw .stopped }
    var wanted = configuration
    wanted.bitrate = bitrate
    wanted.frameRate = frameRate
    try wanted.check()
    configuration = wanted
    quantizerControl.retarget(wanted)
    isRateStale = true
  }

  /// Nothing is held back.
  ///
  /// - Throws: ``/Media/EncoderError/stopped``.
  public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard session != nil else { throw .stopped }
  }
}

extension VAAPIEncoder {
  /// Encodes the picture on `surface` as the next one of the stream; its NAL units are in the session's coded picture
  /// then, which is to be released.
  ///
  /// A picture that does not fit the coded buffer is encoded again in its own place, with the reference that it had,
  /// at a higher quantizer.
  private func encode(
    _ surface: VASurfaceID, _ session: EncodingSession, isIDR: Bool
  ) throws(EncoderError) {
    let here = position.next(isIDR: isIDR)
    let tellsRate = isIDR || isRateStale
    // Whatever happens on the way, the driver's state is not known then.
    needsKeyFrame = true
    var retry = 0
    while true {
      let quantizer = quantizer(isIDR: isIDR, retry: retry)
      do throws(EncoderError) {
        try addBuffers(session, here, quantizer: quantizer, retry: retry, tellsRate: tellsRate || retry > 0)
      } catch {
        session.buffers.destroy()
        throw error
      }
      try session.buffers.encode(surface)
      try session.coded.read(surface)
      guard session.coded.hasOverflown else {
        try accept(session, here, quantizer: quantizer, retry: retry)
        return
      }
      session.coded.release()
      if retry == 0 { counters.overflows += 1 }
      retry += 1
      guard retry <= RateParameters.retryLimit else {
        throw .output(
          library: "VA-API",
          "a picture does not fit \(session.context.codedCapacity) bytes at quantizer \(quantizer) either")
      }
    }
  }

  private func accept(
    _ session: EncodingSession, _ here: PicturePosition, quantizer: Int, retry: Int
  ) throws(EncoderError) {
    do throws(EncoderError) {
      try session.coded.checkSlices(isIDR: here.isIDR)
    } catch {
      session.coded.release()
      throw error
    }
    quantizerControl.coded(bytes: session.coded.byteCount, quantizer: quantizer, isIDR: here.isIDR)
    referenceIndex = 1 - referenceIndex
    position = here
    needsKeyFrame = false
    // After a retry the driver's rate control is to be told the true rate again.
    isRateStale = retry > 0
  }

  private func addBuffers(
    _ session: EncodingSession, _ here: PicturePosition, quantizer: Int, retry: Int, tellsRate: Bool
  ) throws(EncoderError) {
    let buffers = session.buffers
    let surfaces = session.context.reconstructed.identifiers
    if here.isIDR {
      let peak = stream.rate.peak(configuration, retry: retry)
      try stream.parameters.addSequence(to: buffers, bitrate: peak, frameRate: configuration.frameRate)
    }
    if tellsRate { try stream.rate.add(to: buffers, configuration, retry: retry) }
    try stream.parameters.addPicture(
      to: buffers, here, reconstructed: surfaces[1 - referenceIndex], reference: surfaces[referenceIndex],
      referencePosition: position, codedBuffer: session.context.codedBuffer)
    if here.isIDR, session.packed.contains(.sequence) {
      try buffers.add(
        packed: UInt32(VAEncPackedHeaderSequence.rawValue), stream.parameters.packedSets,
        bitCount: stream.parameters.packedSets.count * 8)
    }
    try stream.parameters.addSlices(
      to: buffers, here, quantizer: quantizer, packed: session.packed.contains(.slice))
  }

  /// The quantizer that the slice header says. Where the driver controls the rate, that is the PPS's own: the driver
  /// puts its choice there.
  private func quantizer(isIDR: Bool, retry: Int) -> Int {
    guard !stream.rate.isControlled else { return stream.parameters.pictureParameters.initialQuantizer }
    let quantizer =
      if case .constantQuantizer(let fixed) = configuration.rateControl { fixed } else {
        quantizerControl.quantizer(isIDR: isIDR)
      }
    return min(51, quantizer + retry * RateParameters.retryStep)
  }

  /// Looks at the first IDR and takes the driver's parameter sets where it writes its own.
  private func examine(_ session: EncodingSession) throws(EncoderError) {
    let coded = session.coded
    do throws(ParameterSetError) {
      if let unit = coded.nalUnits.first(where: { $0.type == .idrSlice }) {
        let beginning = try SliceHeader.Beginning(nalUnit: unit.bytes)
        guard beginning.isIntra, beginning.firstMacroblock == 0 else {
          throw .value("first slice of type \(beginning.sliceType) at macroblock \(beginning.firstMacroblock)")
        }
        let set = session.packed.contains(.sequence) ? parameterSets.picture : coded.picture.map { Array($0) } ?? []
        let identifier = try PictureParameterSet.identifier(nalUnit: set)
        guard beginning.pictureParameterSet == identifier else {
          throw .value("first slice by PPS \(beginning.pictureParameterSet) where the PPS is \(identifier)")
        }
      }
      if let bytes = coded.sequence {
        let size = try SequenceParameterSet(nalUnit: Array(bytes)).size
        guard size == configuration.size else {
          throw .value("size of \(size) where \(configuration.size) was asked for")
        }
      }
      guard !session.packed.contains(.sequence) else { return }
      let sets = try DriverParameterSets(coded, stream.parameters.sequenceParameters)
      driverSets = sets
      parameterSets = sets.sent
    } catch {
      throw .output(library: "VA-API (\(session.vendor))", error.description)
    }
  }

  /// Refuses parameter sets of the driver's that are not what a receiver was told.
  private func checkDriverSets(_ session: EncodingSession) throws(EncoderError) {
    guard let driverSets else { return }
    guard driverSets.apply(to: session.coded) else {
      session.coded.release()
      needsKeyFrame = true
      throw .output(library: "VA-API (\(session.vendor))", "the driver changed its parameter sets in mid-stream")
    }
  }
}
