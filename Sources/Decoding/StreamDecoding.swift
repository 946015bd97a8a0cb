import Adaptors
import Media
import Platform

/// The decoding of one stream, from access units to pictures. The decoder uses it under its lock.
struct StreamDecoding {
  private(set) var configuration: VideoDecoder.Configuration
  private(set) var counts = VideoDecoder.Counts()
  private(set) var selection: VideoDecoder.Selection
  private(set) var needsKeyFrame = true

  private var session: CodecSession?
  private var hardware: HardwareChoice
  private var pools = PicturePools()
  private var gate = StreamGate(.h264)
  private var arrivals = ArrivalTable()
  /// The parameter sets that the session got last, and those that libavcodec has accepted.
  private var (sentSets, acceptedSets): ([UInt8], [UInt8]) = ([], [])
  /// The recovery from a recovery point to correct pictures; nil if decoding began at a key frame.
  private var recovery: Recovery?
  /// `true` if the next key frame begins a new coded video sequence: in H.264, an SPS has come since the last one.
  private var hasNewSequence = false
  /// The number of key frames in a row that the driver could not decode.
  private var failedKeyFrames = 0
  /// The number of the last access unit in its source's sequence.
  private var formerNumber: UInt64?
  /// The error that occurred after the pictures that the last call returned; nil if there was none.
  private var lateError: DecoderError?

  /// Opens a decoder.
  ///
  /// - Throws: ``DecoderError/configuration(_:)``, ``DecoderError/unavailable(_:)``.
  init(_ configuration: VideoDecoder.Configuration) throws(DecoderError) {
    try configuration.check()
    let (session, reason) = try CodecSession.open(.h264, configuration)
    (self.configuration, self.session) = (configuration, session)
    selection = VideoDecoder.Selection(session, reason)
    hardware = HardwareChoice(isPresent: session.isHardware)
  }

  /// Restarts with `configuration` at the next access unit. The parameter sets stay.
  mutating func begin(_ configuration: VideoDecoder.Configuration) {
    self.configuration = configuration
    (session, recovery, failedKeyFrames, lateError) = (nil, nil, 0, nil)
    pools.retire()
    awaitKeyFrame()
  }

  /// Restarts for a stream of `codec`, if the present stream has another one. Nothing of the present stream stays.
  private mutating func follow(_ codec: VideoCodec) {
    guard codec != gate.codec else { return }
    gate = StreamGate(codec)
    (acceptedSets, hasNewSequence, hardware) = ([], false, HardwareChoice(isPresent: hardware.isPresent))
    begin(configuration)
  }

  /// Closes the decoder.
  mutating func close() {
    session = nil
    pools.retire()
  }

  /// Learns the parameter sets of `codec` in a byte stream.
  mutating func learn(_ bytes: [UInt8], _ codec: VideoCodec) throws(DecoderError) {
    follow(codec)
    let passed = try bytes.span.bytes.withUnsafeBytes { bytes throws(DecoderError) in
      // Only the parameter sets are kept: the memory of the slices is lent.
      let passed = try gate.check(bytes, configuration)
      return (hasNewSequence: passed.hasNewSequence, refusal: passed.refusal)
    }
    if passed.hasNewSequence { hasNewSequence = true }
    hardware.note(isSliced: false, isNewSequence: passed.hasNewSequence)
    if let refusal = passed.refusal { throw refusal }
  }

  /// Leaves pictures out until the next one at which a decoder can start.
  mutating func awaitKeyFrame() {
    needsKeyFrame = true
    gate.restart()
  }

  /// Decodes an access unit. Gives each complete picture to `deliver` at once, and returns all of them at the end.
  mutating func decode(
    _ unit: EncodedPicture, _ deliver: (DecodedPicture) -> Void
  ) throws(DecoderError) -> [DecodedPicture] {
    counts.accessUnits &+= 1
    follow(unit.codec)
    if let number = unit.number, let formerNumber, number != formerNumber &+ 1 { awaitKeyFrame() }
    formerNumber = unit.number
    var shown: [DecodedPicture] = []
    do throws(DecoderError) {
      guard !unit.isDamaged else { throw .damaged("its sender or the network lost a part") }
      try unit.annexB.span.bytes.withUnsafeBytes { bytes throws(DecoderError) in
        try decode(bytes, unit) {
          deliver($0)
          shown.append($0)
        }
      }
    } catch {
      counts.refused &+= 1
      awaitKeyFrame()
      return try finish(shown, error)
    }
    if !needsKeyFrame { lateError = nil }
    return shown
  }

  /// Refuses an access unit that cannot be read. Returns the error.
  mutating func refuse(_ error: DecoderError) -> DecoderError {
    counts.accessUnits &+= 1
    counts.refused &+= 1
    (formerNumber, lateError) = (nil, nil)
    awaitKeyFrame()
    return error
  }

  /// Completes the pictures that are held back at a stream's end. Gives each one to `deliver` at once, then returns them all.
  mutating func flush(_ deliver: (DecodedPicture) -> Void) throws(DecoderError) -> [DecodedPicture] {
    guard let session else { return [] }
    defer {
      // The session has ended. The next access unit at which a decoder can start begins another one.
      recovery = nil
      awaitKeyFrame()
    }
    var shown: [DecodedPicture] = []
    do throws(DecoderError) {
      if let lateError { throw lateError }
      guard !gate.awaitsField else { throw .damaged("a field is missing") }
      guard !needsKeyFrame else { return [] }
      try drain(session) {
        deliver($0)
        shown.append($0)
      }
    } catch {
      return try finish(shown, error)
    }
    return shown
  }

  /// Ends a call that failed: returns the pictures that were complete before, and leaves the error to the next call.
  private mutating func finish(
    _ shown: [DecodedPicture], _ error: DecoderError
  ) throws(DecoderError) -> [DecodedPicture] {
    let former = lateError
    lateError = shown.isEmpty ? nil : error
    guard shown.isEmpty else { return shown }
    // The former error says why the decoder waits.
    if case .awaitsKeyFrame = error, let former { throw former }
    throw error
  }

  // MARK: Access units

  private mutating func decode(
    _ bytes: UnsafeRawBufferPointer, _ unit: EncodedPicture, _ deliver: (DecodedPicture) -> Void
  ) throws(DecoderError) {
    let passed = try gate.check(bytes, configuration)
    if passed.hasNewSequence || passed.followsEnd { hasNewSequence = true }
    hardware.note(isSliced: passed.isSliced, isNewSequence: passed.hasNewSequence)
    guard !passed.units.isEmpty else { return }
    if passed.leavesField { needsKeyFrame = true }
    let number = arrivals.add(unit.timestamp, unit.captured)
    let sets: [UInt8]
    var entersByRecovery = false
    if passed.isKeyFrame {
      let wanted = hardware.wantsHardware(isNewSequence: hasNewSequence)
      finishSequence(wanted, deliver)
      sets = try checkedSets(passed)
      try beginSequence(wanted, passed)
      (recovery, hasNewSequence) = (nil, false)
    } else if needsKeyFrame {
      guard let point = passed.recoveryPoint, let first = passed.first, !passed.isSecondField else {
        return try keepWarm(passed, number)
      }
      sets = try checkedSets(passed)
      try beginRecovery(passed)
      recovery = Recovery(point, first.slice, first.sequence, number: number)
      entersByRecovery = true
    } else {
      sets = try checkedSets(passed)
    }
    guard let session else { throw .awaitsKeyFrame }
    guard !session.isHardware || !passed.isSliced else {
      // The key frame had one slice.
      hardware.fail()
      throw .hardware(Self.sliceReason)
    }
    if session.isLenient, recovery?.isSettled != false { session.isLenient = false }
    var isEarly = false
    if let first = passed.first, !passed.isSecondField {
      isEarly = recovery?.follow(first.slice, number: number) ?? false
    }
    do throws(CodecSession.Fault) {
      try send(passed, sets, number, to: session, marksRecovery: entersByRecovery)
    } catch {
      guard isEarly, error.isOfData else { throw failure(error, passed.isKeyFrame) }
    }
    needsKeyFrame = false
    try takePictures(session, isKeyFrame: passed.isKeyFrame, isEarly: isEarly, deliver)
    if passed.isKeyFrame { failedKeyFrames = 0 }
    if session.isRefused, selection.isHardware {
      selection = VideoDecoder.Selection(session, "the driver does not decode this stream")
      hardware.fail()
    }
  }

  /// Sends an access unit, with its parameter sets where the session lacks them.
  private mutating func send(
    _ passed: StreamGate.Passed, _ sets: [UInt8], _ number: Int64, to session: CodecSession, marksRecovery: Bool
  ) throws(CodecSession.Fault) {
    var head = sets == sentSets ? [] : sets
    if marksRecovery { head += Recovery.message }
    try session.send(
      .init(head: head, units: passed.units, ends: passed.ends, isSecondField: passed.isSecondField), number: number)
    sentSets = sets
  }

  /// Returns the parameter sets that an access unit names, if libavcodec accepts them. A set that libavcodec refuses is forgotten;
  /// the stream continues once a correct one comes.
  ///
  /// - Throws: ``DecoderError/parameterSet(_:)``, ``DecoderError/missingParameterSets``, ``DecoderError/memory``.
  private mutating func checkedSets(_ passed: StreamGate.Passed) throws(DecoderError) -> [UInt8] {
    guard let sets = gate.annexB(pictures: passed.pictureParameterSets.sorted()) else { throw .missingParameterSets }
    guard sets != acceptedSets else { return sets }
    do throws(CodecSession.Fault) {
      if try CodecSession.accepts(sets, gate.codec) {
        acceptedSets = sets
        return sets
      }
      for picture in passed.pictureParameterSets {
        guard let sequence = gate.sequence(ofPicture: picture), let set = gate.annexB(sequence: sequence) else {
          continue
        }
        let isRight = try CodecSession.accepts(set, gate.codec)
        if isRight { gate.forget(picture: picture) } else { gate.forget(sequence: sequence) }
      }
    } catch {
      throw Self.error(of: error)
    }
    throw .parameterSet(.value("value, as libavcodec finds"))
  }

  // MARK: Entries

  /// Delivers the pictures that are held back, if the session cannot continue at a key frame: another sequence begins,
  /// another decoder takes over, or the recovery has not ended, so that some pictures are not correct.
  private mutating func finishSequence(_ wantsHardware: Bool, _ deliver: (DecodedPicture) -> Void) {
    let isRecovering = recovery.map { !$0.isSettled } ?? false
    guard !needsKeyFrame, let session, hasNewSequence || switches(to: wantsHardware) || isRecovering else { return }
    // A picture of the old sequence that fails does not affect the new sequence.
    try? drain(session, deliver)
    (recovery, needsKeyFrame) = (nil, true)
  }

  private func switches(to wantsHardware: Bool) -> Bool {
    session.map { hardware.isPresent && $0.isHardware != wantsHardware } ?? false
  }

  /// Prepares the session for a key frame.
  private mutating func beginSequence(_ wantsHardware: Bool, _ passed: StreamGate.Passed) throws(DecoderError) {
    guard needsKeyFrame || session == nil else { return }
    gate.noteEntry()
    if session == nil {
      try openFirst(passed)
    } else if !switches(to: wantsHardware) {
      try beginAnew()
    } else if !wantsHardware {
      try openSoftware(Self.sliceReason)
    } else if let (next, reason) = try? CodecSession.open(gate.codec, configuration), next.isHardware {
      (session, sentSets) = (next, [])
      selection = VideoDecoder.Selection(next, reason)
    } else {
      hardware.fail()
      try beginAnew()
    }
  }

  /// Prepares the session for a recovery point. Software decodes then, because drivers need all references.
  private mutating func beginRecovery(_ passed: StreamGate.Passed) throws(DecoderError) {
    if let former = session {
      if former.isHardware {
        try openSoftware(Self.recoveryReason)
      } else if recovery == nil {
        try beginAnew()
      }
      // Otherwise the session was entered at a recovery point before, and has references by now.
    } else {
      try openFirst(passed)
    }
    session?.isLenient = true
  }

  /// Decodes a picture without showing it, in a session that began at a recovery point and then failed: libavcodec needs
  /// the picture as a reference of the next one.
  private mutating func keepWarm(_ passed: StreamGate.Passed, _ number: Int64) throws(DecoderError) {
    if recovery != nil, let session, !session.isHardware, let sets = try? checkedSets(passed) {
      try? send(passed, sets, number, to: session, marksRecovery: false)
      for _ in 0..<Self.heldLimit {
        do throws(CodecSession.Fault) { if try session.receive() == nil { break } } catch { continue }
      }
    }
    throw .awaitsKeyFrame
  }

  /// Opens the session that the configuration asks for.
  private mutating func openFirst(_ passed: StreamGate.Passed) throws(DecoderError) {
    try configuration.check()
    let (next, reason) = try CodecSession.open(gate.codec, configuration)
    (session, sentSets) = (next, [])
    hardware.begin(isPresent: next.isHardware)
    selection = VideoDecoder.Selection(next, reason)
    guard next.isHardware else { return }
    if hardware.hasSlices { return try openSoftware(Self.sliceReason) }
    if !passed.isKeyFrame { return try openSoftware(Self.recoveryReason) }
  }

  private mutating func openSoftware(_ reason: String) throws(DecoderError) {
    do throws(CodecSession.Fault) {
      let next = try CodecSession(gate.codec, renderNode: nil, configuration)
      (session, sentSets) = (next, [])
      selection = VideoDecoder.Selection(next, reason)
    } catch {
      throw Self.error(of: error)
    }
  }

  /// Opens the present session again, without any state of the stream.
  private mutating func beginAnew() throws(DecoderError) {
    do throws(CodecSession.Fault) {
      (session, sentSets) = (try session?.begunAnew(), [])
    } catch {
      throw Self.error(of: error)
    }
  }

  // MARK: Pictures

  private mutating func drain(
    _ session: CodecSession, _ deliver: (DecodedPicture) -> Void
  ) throws(DecoderError) {
    do throws(CodecSession.Fault) { try session.end() } catch { throw Self.error(of: error) }
    try takePictures(session, isKeyFrame: false, isEarly: false, deliver)
  }

  private mutating func takePictures(
    _ session: CodecSession, isKeyFrame: Bool, isEarly: Bool, _ deliver: (DecodedPicture) -> Void
  ) throws(DecoderError) {
    var faults = 0
    while true {
      let found: CodecPicture?
      do throws(CodecSession.Fault) {
        found = try session.receive()
      } catch {
        faults += 1
        guard isEarly, error.isOfData, faults <= Self.heldLimit else { throw failure(error, isKeyFrame) }
        continue
      }
      guard let found else { return }
      guard recovery?.isRight(found.number) != false else {
        counts.refused &+= 1
        continue
      }
      guard !found.isDamaged || session.isLenient else { throw .damaged("libavcodec found a fault in it") }
      guard let picture = try copy(found) else { continue }
      counts.pictures &+= 1
      deliver(picture)
    }
  }

  private mutating func copy(_ found: CodecPicture) throws(DecoderError) -> DecodedPicture? {
    guard let format = found.format else { throw .samples("\(found.formatName) samples") }
    try configuration.check(found.size)
    let times = arrivals.times(of: found.number) ?? (.zero, .zero)
    let copied = try pools.copy(
      found, format, limit: configuration.poolCapacity, timestamp: times.timestamp, captured: times.captured,
      keepsSurface: configuration.keepsSurfaces)
    if copied == nil { counts.dropped &+= 1 }
    return copied
  }

  // MARK: Faults

  /// Returns the error for a fault of the session. Hardware that fails without a fault of the data is not used for a while.
  private mutating func failure(_ fault: CodecSession.Fault, _ isKeyFrame: Bool) -> DecoderError {
    guard session?.isHardware == true else { return Self.error(of: fault) }
    if isKeyFrame { failedKeyFrames += 1 }
    // A driver reports data that it cannot decode and damaged data in the same way.
    guard !fault.isOfData || failedKeyFrames >= Self.failedKeyFrameLimit else { return Self.error(of: fault) }
    do throws(CodecSession.Fault) {
      let next = try CodecSession(gate.codec, renderNode: nil, configuration)
      (session, sentSets, failedKeyFrames) = (next, [], 0)
      selection = VideoDecoder.Selection(next, "the hardware decoder failed: \(fault.reason)")
    } catch {
      return Self.error(of: error)
    }
    counts.fallbacks &+= 1
    hardware.fail()
    return .hardware(fault.reason)
  }
}
