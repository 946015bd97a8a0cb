public import Adaptors
public import Media
public import Platform
import Synchronization

/// An H.264 decoder. Access units go in, NV12 pictures come out, each to any number of subscribers.
///
///     let decoder = try VideoDecoder(configuration: .init())
///     let pictures = decoder.decodedFrames(.newest(2))
///     for await unit in units { try decoder.decode(unit) }
///
/// Hardware decodes where a driver does (VA-API), software otherwise; ``selection`` says why. A picture comes out with its
/// own access unit, unless the stream itself reorders pictures.
///
/// The input counts as hostile. Sizes are checked before memory is taken. A picture that is damaged, or whose reference is
/// missing, is never delivered; the next clean key frame plays. Any thread may call the decoder; calls wait for each other.
public final class VideoDecoder: Sendable {
  private struct State {
    var configuration: Configuration
    var counts = Counts()
    var selection: Selection
    var session: CodecSession?
    var output: PictureOutput?
    var gate = StreamGate()
    var arrivals = ArrivalTable()
    var needsKeyFrame = true
    /// `true` if the session lacks parameter sets that the gate has.
    var lacksSets = true
    /// `true` if an SPS has come since the last key frame: the next one begins a new coded video sequence.
    var hasNewSequence = false
    /// The number of key frames in a row that the driver could not decode.
    var failedKeyFrames = 0
    var isInvalidated = false
  }

  private let state: Mutex<State>
  private let broadcast = Broadcast<DecodedPicture>()

  /// Opens a decoder.
  ///
  /// - Throws: ``DecoderError/configuration(_:)``, and ``DecoderError/unavailable(_:)`` where the named render node has no
  ///   driver.
  public init(configuration: Configuration = Configuration()) throws(DecoderError) {
    try configuration.check()
    let (session, reason) = try Self.open(configuration)
    state = Mutex(State(configuration: configuration, selection: Self.selection(session, reason), session: session))
  }

  deinit { broadcast.finish() }

  /// The settings. Setting them begins anew: the decoder opens again with the next access unit, keeps the parameter sets, and
  /// waits for a key frame. An impossible value shows as an error of the next ``decode(_:)``.
  public var configuration: Configuration {
    get { state.withLock { $0.configuration } }
    set {
      state.withLock { state in
        state.configuration = newValue
        (state.session, state.output, state.failedKeyFrames) = (nil, nil, 0)
        Self.awaitKeyFrame(&state)
      }
    }
  }

  /// The decoder in use, and the reason for its choice.
  public var selection: Selection { state.withLock { $0.selection } }

  /// Counts since the decoder was created.
  public var counts: Counts { state.withLock { $0.counts } }

  /// `true` if only a key frame can be decoded.
  public var needsKeyFrame: Bool { state.withLock { $0.needsKeyFrame } }

  /// Returns a stream of the pictures from now on, for one more subscriber, which keeps the newest ones. It ends with
  /// ``invalidate()``.
  public func decodedFrames(_ buffering: Broadcast<DecodedPicture>.Buffering = .newest(1)) -> AsyncStream<
    DecodedPicture
  > {
    broadcast.stream(buffering)
  }

  /// The pictures from now on, for one more subscriber, which keeps the newest one.
  public var decodedFrames: AsyncStream<DecodedPicture> { decodedFrames(.newest(1)) }

  /// Sets the parameter sets for a stream that does not carry them, as MP4 files and session descriptions do.
  ///
  /// - Throws: ``DecoderError`` for sets that are invalid or announce too large a picture.
  public func setParameterSets(_ sets: ParameterSets) throws(DecoderError) {
    try learn(AnnexB.startCode + sets.sequence + AnnexB.startCode + sets.picture)
  }

  /// Sets all parameter sets of a decoder configuration record, the `avcC` box.
  ///
  /// - Throws: as ``setParameterSets(_:)`` does.
  public func setParameterSets(_ record: DecoderConfiguration) throws(DecoderError) {
    try learn((record.sequenceParameterSets + record.pictureParameterSets).flatMap { AnnexB.startCode + $0 })
  }

  private func learn(_ bytes: [UInt8]) throws(DecoderError) {
    try withState { state throws(DecoderError) in
      defer { state.lacksSets = true }
      _ = try bytes.span.bytes.withUnsafeBytes { bytes throws(DecoderError) in
        try state.gate.check(bytes, state.configuration)
      }
    }
  }

  /// Decodes an access unit. The pictures that are complete go to the subscribers, and are returned.
  ///
  /// Without reordered pictures that is the access unit's own picture. The pool limits how many pictures exist at once
  /// (``Configuration/poolCapacity``).
  ///
  /// - Throws: ``DecoderError``. Pictures that were complete before the error have gone to the subscribers.
  @discardableResult
  public func decode(_ unit: EncodedPicture) throws(DecoderError) -> [DecodedPicture] {
    try withState { state throws(DecoderError) in
      state.counts.accessUnits &+= 1
      do throws(DecoderError) {
        guard !unit.isDamaged else { throw .damaged("its sender or the network lost a part") }
        return try unit.annexB.span.bytes.withUnsafeBytes { bytes throws(DecoderError) in
          try decode(bytes, unit, &state)
        }
      } catch {
        state.counts.refused &+= 1
        Self.awaitKeyFrame(&state)
        throw error
      }
    }
  }

  /// Decodes an access unit of length-prefixed NAL units.
  ///
  /// - Throws: ``DecoderError``, as ``decode(_:)`` does; ``DecoderError/format(_:)`` for lengths that do not fit.
  @discardableResult
  public func decode(
    avcc bytes: UnsafeRawBufferPointer, lengthSize: Int = AVCC.lengthSize, timestamp: Instant
  ) throws(DecoderError) -> [DecodedPicture] {
    let limit = configuration.maximumAccessUnitBytes
    guard bytes.count <= limit else { throw .accessUnitSize(bytes.count, limit: limit) }
    let unit: EncodedPicture
    do throws(NALUnitFormatError) {
      unit = try EncodedPicture(avcc: bytes, lengthSize: lengthSize, timestamp: timestamp)
    } catch {
      state.withLock { Self.awaitKeyFrame(&$0) }
      throw .format(error)
    }
    return try decode(unit)
  }

  /// Delivers and returns the pictures that are held back for reordering, at the end of a stream. The next access unit must
  /// be a key frame.
  ///
  /// - Throws: ``DecoderError``.
  @discardableResult
  public func flush() throws(DecoderError) -> [DecodedPicture] {
    try withState { state throws(DecoderError) in
      guard let session = state.session else { return [] }
      defer { Self.awaitKeyFrame(&state) }
      return try drain(session, &state)
    }
  }

  /// Closes the decoder and ends the subscribers' streams. Later calls throw ``DecoderError/invalidated``. Idempotent.
  public func invalidate() {
    state.withLock { state in
      (state.isInvalidated, state.session, state.output) = (true, nil, nil)
    }
    broadcast.finish()
  }

  // MARK: Decoding

  private func withState<Result>(
    _ body: (inout State) throws(DecoderError) -> Result
  ) throws(DecoderError) -> Result where Result: Sendable {
    try state.withLock { state throws(DecoderError) in
      guard !state.isInvalidated else { throw .invalidated }
      return try body(&state)
    }
  }

  private static func awaitKeyFrame(_ state: inout State) {
    state.needsKeyFrame = true
    state.gate.restart()
  }

  private func decode(
    _ bytes: UnsafeRawBufferPointer, _ unit: EncodedPicture, _ state: inout State
  ) throws(DecoderError) -> [DecodedPicture] {
    let passed = try state.gate.check(bytes, state.configuration)
    if passed.hasNewSequence { state.hasNewSequence = true }
    guard passed.hasPicture else {
      state.lacksSets = true
      return []
    }
    guard passed.isKeyFrame || !state.needsKeyFrame else { throw .awaitsKeyFrame }
    let former = passed.isKeyFrame && state.hasNewSequence ? try finishSequence(&state) : []
    let session = try openedSession(&state)
    state.arrivals.add(unit.timestamp.nanoseconds, unit.captured)
    do throws(CodecSession.Fault) {
      let sets = state.lacksSets ? state.gate.stored.annexB : []
      try sets.span.bytes.withUnsafeBytes { sets throws(CodecSession.Fault) in
        try session.send([sets, bytes], timestamp: unit.timestamp.nanoseconds)
      }
    } catch {
      throw failure(error, passed.isKeyFrame, &state)
    }
    (state.needsKeyFrame, state.lacksSets) = (false, false)
    if passed.isKeyFrame { state.hasNewSequence = false }
    let pictures = former + (try takePictures(session, isKeyFrame: passed.isKeyFrame, &state))
    if passed.isKeyFrame { state.failedKeyFrames = 0 }
    if session.isRefused, state.selection.isHardware {
      state.selection = Self.selection(session, "the driver does not decode this stream")
    }
    return pictures
  }

  /// Delivers and returns the pictures that are held back, before another sequence begins.
  private func finishSequence(_ state: inout State) throws(DecoderError) -> [DecodedPicture] {
    guard !state.needsKeyFrame, let session = state.session else { return [] }
    // A picture of the old sequence that fails takes nothing from the new one.
    let pictures = try? Result { () throws(DecoderError) in try drain(session, &state) }.get()
    state.needsKeyFrame = true
    return pictures ?? []
  }

  private func drain(_ session: CodecSession, _ state: inout State) throws(DecoderError) -> [DecodedPicture] {
    do throws(CodecSession.Fault) { try session.end() } catch { throw Self.error(of: error) }
    return try takePictures(session, &state)
  }

  private func takePictures(
    _ session: CodecSession, isKeyFrame: Bool = false, _ state: inout State
  ) throws(DecoderError) -> [DecodedPicture] {
    var pictures: [DecodedPicture] = []
    while true {
      let found: CodecPicture?
      do throws(CodecSession.Fault) { found = try session.receive() } catch { throw failure(error, isKeyFrame, &state) }
      guard let found else { return pictures }
      guard !found.isDamaged else { throw .damaged("libavcodec concealed a part of it") }
      guard let picture = try copy(found, &state) else { continue }
      state.counts.pictures &+= 1
      broadcast.send(picture)
      pictures.append(picture)
    }
  }

  private func copy(_ found: CodecPicture, _ state: inout State) throws(DecoderError) -> DecodedPicture? {
    guard let format = found.format else { throw .samples("\(found.formatName) samples") }
    try state.configuration.check(found.size)
    if state.output?.fits(found) != true {
      // The former pool goes first, as far as nobody holds its pictures.
      state.output = nil
      state.output = try PictureOutput(size: found.size, format: format, capacity: state.configuration.poolCapacity)
    }
    let copied = try state.output?.copy(
      found, captured: state.arrivals.time(of: found.timestamp),
      keepsSurface: state.configuration.keepsSurfaces)
    if copied == nil { state.counts.dropped &+= 1 }
    return copied
  }

  /// Returns the error for a fault of the session. Hardware that fails for a reason of its own is given up.
  private func failure(_ fault: CodecSession.Fault, _ isKeyFrame: Bool, _ state: inout State) -> DecoderError {
    guard state.session?.isHardware == true else { return Self.error(of: fault) }
    if isKeyFrame { state.failedKeyFrames += 1 }
    // A driver tells data that it cannot decode and data that are wrong alike.
    guard !fault.isOfData || state.failedKeyFrames >= Self.failedKeyFrameLimit else { return Self.error(of: fault) }
    do throws(CodecSession.Fault) {
      let session = try CodecSession(renderNode: nil, state.configuration)
      state.session = session
      state.selection = Self.selection(session, "the hardware decoder failed: \(fault.reason)")
      state.counts.fallbacks &+= 1
      (state.failedKeyFrames, state.lacksSets) = (0, true)
    } catch {
      return Self.error(of: error)
    }
    return .hardware(fault.reason)
  }

  /// The number of key frames in a row that a driver may fail to decode.
  private static let failedKeyFrameLimit = 2

  private static func error(of fault: CodecSession.Fault) -> DecoderError {
    fault.isOfMemory ? .memory : .damaged(fault.reason)
  }

  // MARK: Opening

  private func openedSession(_ state: inout State) throws(DecoderError) -> CodecSession {
    if let session = state.session {
      guard state.needsKeyFrame else { return session }
      // Nothing of what the stream has made of the decoder lasts.
      do throws(CodecSession.Fault) {
        let fresh = try session.begunAnew()
        (state.session, state.lacksSets) = (fresh, true)
        return fresh
      } catch {
        throw Self.error(of: error)
      }
    }
    try state.configuration.check()
    let (session, reason) = try Self.open(state.configuration)
    (state.session, state.selection, state.lacksSets) = (session, Self.selection(session, reason), true)
    return session
  }

  private static func selection(_ session: CodecSession, _ reason: String) -> Selection {
    Selection(isHardware: session.isHardware, name: session.name, reason: reason)
  }

  private static func open(_ configuration: Configuration) throws(DecoderError) -> (CodecSession, reason: String) {
    func session(_ node: String?) throws(CodecSession.Fault) -> CodecSession {
      try CodecSession(renderNode: node, configuration)
    }
    var reason = "software was asked for"
    do throws(CodecSession.Fault) {
      switch configuration.acceleration {
      case .software: break
      case .renderNode(let node): return (try session(node), "\(node) was asked for")
      case .automatic:
        reason = "there is no render node in \(RenderNodes.directory)"
        for node in RenderNodes.all() {
          do throws(CodecSession.Fault) {
            return (try session(node), "the driver of \(node) opens")
          } catch {
            reason = "\(node) has no driver that opens: \(error.reason)"
          }
        }
      }
      return (try session(nil), reason)
    } catch {
      if case .renderNode(let node) = configuration.acceleration {
        throw .unavailable("\(node) has no VA-API driver that opens: \(error.reason)")
      }
      throw .unavailable("libavcodec does not open its H.264 decoder: \(error.reason)")
    }
  }
}
