import CVA
public import Media
import Platform

/// An encoder of H.264 or HEVC on a GPU through libva. Each frame gives one access unit with an IDR or P picture. Each P
/// picture has the previous picture as its only reference. Hardware that codes no P slices of HEVC gets B slices with that
/// reference in both lists.
///
/// Drivers check almost none of their parameters, so the encoder checks every output. A picture without the requested
/// slices is an error and is never passed on. After any error the next picture is an IDR picture.
public final class VAAPIEncoder: StagedVideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands.

  /// The encoder's configuration, with the quality level of the last picture.
  public private(set) var configuration: EncoderConfiguration
  /// The encoder's name for display: the driver, the entry point and the rate control.
  public private(set) var name: String
  /// The parameter sets of the stream. A driver may write its own; they are known after ``prepare()``.
  public internal(set) var parameterSets: ParameterSets {
    didSet { setUnits = SetUnits(parameterSets) }
  }
  /// The numbers of imported frames, of copied frames, and of frames encoded again because they did not fit the coded
  /// buffer.
  public private(set) var counters = EncoderCounters()
  /// The capabilities of the entry point in use, as the driver lists them.
  public var capabilities: VAAPICapabilities.Encoder { stream.offer }

  /// The orientations that the driver's video processing applies, as verified by a test.
  public var turns: OrientationSet { session?.turning?.orientations ?? [] }

  private let node: RenderNode
  private let isToRotate: Bool
  private var session: EncodingSession?
  var stream: StreamParameters
  private var setUnits: SetUnits
  private var quantizerControl: QuantizerControl
  /// The driver's parameter sets, if the driver writes its own.
  var driverSets: DriverParameterSets?

  private var isPrepared = false
  var needsKeyFrame = true
  /// `true` if the driver must get the new rate with the next picture.
  private var isRateStale = false
  /// The quality level that waits for a key frame; nil if none does.
  var awaitedQuality: AwaitedQuality?
  /// `true` if the driver has refused another level in mid-stream.
  var isQualityFixed = false
  private var position = PicturePosition()
  /// The index of the reconstructed surface that has the last picture.
  private var referenceIndex = 0
  private var loaded = Loaded.nothing
  private var timestamp = Instant.zero
  private var captured = Instant.zero

  /// The source of the next picture.
  private enum Loaded: ~Copyable {
    case nothing
    /// The picture is in the mapped surface.
    case copy
    /// The picture is in the mapped input surface of the video processing.
    case rotatedCopy(Orientation)
    /// The driver reads the DMA-BUF in place. If it cannot, the planes are copied.
    case buffer(DMABuffer, descriptor: FileDescriptor?, Orientation)
  }

  /// Opens the driver of the render node at the path `node` for `configuration`.
  ///
  /// - Parameters:
  ///   - configuration: The encoder's configuration.
  ///   - node: The path of the render node, such as `/dev/dri/renderD128`.
  ///   - turns: `true` if frames may need rotation (``/Media/Frame/orientation``) that the driver's video processing
  ///     should apply. ``turns`` lists the orientations that it applies.
  /// - Throws: ``/Media/EncoderError`` if a value is impossible, the node does not exist, permission is denied, the
  ///   driver lacks a necessary capability, or a call to libva fails.
  public init(_ configuration: EncoderConfiguration, node: String, turns: Bool = false) throws(EncoderError) {
    try configuration.check()
    if let quality = configuration.vaapiQuality, quality < 1 {
      throw .configuration("a VA-API quality level of \(quality): choose 1 for the best, or more for faster ones")
    }
    guard configuration.sliceBytes == nil else {
      throw .unavailable("only x264 limits slices in bytes (--slice-size); VA-API counts rows (--slices)")
    }
    guard configuration.refreshFrames == nil else {
      throw .unavailable("only x264 refreshes pictures column by column (--intra-refresh)")
    }
    guard configuration.codec == .h264 || configuration.slices == 1 else {
      throw .configuration("a picture of HEVC is one slice: leave out --slices")
    }
    self.node = RenderNode(path: node)
    isToRotate = turns
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

  /// Frees all resources of the driver.
  public func stop() {
    session = nil
    loaded = .nothing
  }

  /// Encodes two grey pictures and checks the output: an IDR picture of the right size that starts with the first
  /// macroblock, then a P picture. If the entry point fails the check after the driver accepted all parameters, the
  /// encoder tries the other entry point.
  ///
  /// - Throws: ``/Media/EncoderError`` if the encoder is stopped, a call to libva fails, or the output is not as
  ///   requested.
  public func prepare() throws(EncoderError) {
    guard session != nil else { throw .stopped }
    guard !isPrepared else { return }
    // The next lines overwrite a frame that was loaded before.
    loaded = .nothing
    do throws(EncoderError) {
      try tryOut()
    } catch {
      // A driver that is open twice may run out of resources that exist once.
      session = nil
      let failed = stream.offer.entryPoint
      // Report the first failure: most drivers have no second entry point.
      guard let second = try? EncodingSession.open(configuration, node: node, turns: isToRotate, without: failed) else {
        throw error
      }
      stream = try StreamParameters(configuration, second)
      name = stream.name
      parameterSets = stream.parameterSets
      session = second
      do throws(EncoderError) { try tryOut() } catch _ { throw error }
    }
    // Grey pictures need almost no bits, so their sizes say nothing about real pictures.
    quantizerControl = QuantizerControl(configuration)
    counters = EncoderCounters()
    needsKeyFrame = true
    isPrepared = true
  }

  private func tryOut() throws(EncoderError) {
    guard let session else { throw .stopped }
    driverSets = nil
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
  /// - Throws: ``/Media/EncoderError`` if the encoder is stopped, the frame does not match the configuration, a call to
  ///   libva fails, or the output is not as requested.
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
  /// - Throws: ``/Media/EncoderError`` if the encoder is stopped or a call to libva fails.
  public func mapInput() throws(EncoderError) {
    // A driver may write the parameter sets itself, even if it takes packed ones. They are unknown until it has encoded a
    // picture.
    if !isPrepared { try prepare() }
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
      throw .notTurned(orientation, reason: session.turning?.failure ?? "the driver does not rotate pictures")
    }
    guard session.upload.isMapped else { throw .order(call: "load(_:)", needs: "mapInput()") }
    timestamp = frame.timestamp
    captured = frame.captured
    let imports = session.imports(for: orientation)
    if let buffer = frame.dmaBuffer, imports.accepts(buffer) {
      loaded = .buffer(buffer, descriptor: imports.descriptor(for: buffer), orientation)
    } else if let turning = session.turning, orientation != .upright {
      turning.input.copyCorner(planes)
      loaded = .rotatedCopy(orientation)
    } else {
      session.upload.copy(planes)
      loaded = .copy
    }
  }

  /// Encodes the loaded frame; see ``/Media/StagedVideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError`` if no frame is loaded, the encoder is stopped, a call to libva fails, or the
  ///   output is not as requested.
  public func encodeLoaded(keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard let session else { throw .stopped }
    let source = exchange(&loaded, with: .nothing)
    let isIDR =
      keyFrame || needsKeyFrame || waitForQuality() || position.orderCount >= PicturePosition.orderCountLimit
    var (isImported, isRotated) = (false, false)
    switch consume source {
    case .nothing: throw .order(call: "encodeLoaded(keyFrame:deliver:)", needs: "load(_:)")
    case .copy: try encode(try session.upload.finish(), session, isIDR: isIDR)
    case .rotatedCopy(let orientation):
      try encode(try session.rotatedCopy(by: orientation), session, isIDR: isIDR)
      isRotated = true
    case .buffer(let buffer, let descriptor, let orientation):
      guard let source = session.imports(for: orientation).surface(for: buffer, descriptor) else {
        throw .importRefused(library: "VA-API")
      }
      let surface = try session.turned(source, by: orientation)
      do throws(EncoderError) {
        try encode(surface, session, isIDR: isIDR)
      } catch {
        // A driver may import buffers that it cannot encode from. If one import has succeeded before, the failure has
        // another cause.
        guard counters.imported == 0, orientation == .upright else { throw error }
        session.imports.giveUp()
        throw .importRefused(library: "VA-API")
      }
      (isImported, isRotated) = (true, orientation != .upright)
    }
    let coded = session.coded
    if isIDR { try checkDriverSets(session) }
    if isImported { counters.imported += 1 } else { counters.copied += 1 }
    if isRotated { counters.turned += 1 }
    if isIDR {
      deliver(
        AccessUnit(
          nalUnits: coded.nalUnits(after: setUnits), isKeyFrame: true, timestamp: timestamp, captured: captured))
    } else {
      deliver(
        AccessUnit(nalUnits: coded.nalUnits, isKeyFrame: false, timestamp: timestamp, captured: captured))
    }
    coded.release()
  }

  /// Changes the bitrate and the frame rate; the driver gets both with the next picture.
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

  /// Does nothing, because the encoder holds no pictures back.
  ///
  /// - Throws: ``/Media/EncoderError/stopped``.
  public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard session != nil else { throw .stopped }
  }
}

extension VAAPIEncoder {
  /// Encodes the picture on `surface` as the next one of the stream. Its NAL units are then in the session's coded
  /// buffer, which the caller releases.
  ///
  /// A picture that does not fit the coded buffer is encoded again at a higher quantizer, in the same position and with
  /// the same reference. A picture that the driver refuses together with another quality level is encoded again with the
  /// former level.
  private func encode(
    _ surface: VASurfaceID, _ session: EncodingSession, isIDR: Bool
  ) throws(EncoderError) {
    let here = position.next(isIDR: isIDR)
    let tellsRate = isIDR || isRateStale
    // After an error at any point below, the driver's state is unknown.
    needsKeyFrame = true
    var former = isIDR ? beginAwaitedQuality() : nil
    var refused: Int?
    var retry = 0
    while true {
      let quantizer = quantizer(isIDR: isIDR, retry: retry)
      do throws(EncoderError) {
        try addBuffers(session, here, quantizer: quantizer, retry: retry, tellsRate: tellsRate || retry > 0)
        try session.buffers.encode(surface)
      } catch {
        session.buffers.destroy()
        guard let rate = former else {
          if let refused { awaitQualityAgain(refused) }
          throw error
        }
        (former, refused) = (nil, stream.rate.quality)
        refuseQuality(rate)
        continue
      }
      (former, refused) = (nil, nil)
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
    // After a retry the driver's rate control needs the true rate again.
    isRateStale = retry > 0
    if here.isIDR, let level = stream.rate.quality { configuration.vaapiQuality = level > 0 ? level : nil }
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
    try stream.parameters.addPicture(
      to: buffers, here, reconstructed: surfaces[1 - referenceIndex], reference: surfaces[referenceIndex],
      referencePosition: position, codedBuffer: session.context.codedBuffer)
    // Intel's driver keeps the limits of the quantizer with the picture's parameters: those of HEVC overwrite limits that came
    // before them, and before those of H.264 it does not know yet which picture parameter set they belong to.
    if tellsRate { try stream.rate.add(to: buffers, configuration, retry: retry) }
    if here.isIDR, session.packed.contains(.sequence) {
      try buffers.add(
        packed: UInt32(VAEncPackedHeaderSequence.rawValue), stream.parameters.packedSets,
        bitCount: stream.parameters.packedSets.count * 8)
    }
    try stream.parameters.addSlices(
      to: buffers, here, quantizer: quantizer, packed: session.packed.contains(.slice))
  }

  /// Returns the quantizer for the slice header. If the driver controls the rate, that is the PPS's own: the driver
  /// writes its choice there.
  private func quantizer(isIDR: Bool, retry: Int) -> Int {
    guard !stream.rate.isControlled else { return stream.parameters.initialQuantizer }
    let quantizer =
      if case .constantQuantizer(let fixed) = configuration.rateControl { fixed } else {
        quantizerControl.quantizer(isIDR: isIDR)
      }
    return min(51, quantizer + retry * RateParameters.retryStep)
  }
}
