public import Media
public import Platform

/// A multiplexer that writes access units as an MPEG-2 transport stream, ISO/IEC 13818-1: one video of H.264 or HEVC, and
/// one Opus sound if there is any.
///
/// Every access unit of the video is one PES packet of unbounded length: a PTS, then an access unit delimiter. The program
/// clock (PCR) accompanies every access unit on the video's PID. PAT and PMT accompany every key frame, and are sent at
/// least every ``tableInterval``.
///
/// The clock is the time at which an access unit's picture was captured. The PTS is ``presentationDelay`` later, or with
/// sound ``presentationDelayWithSound``.
///
/// Every Opus packet is a PES packet of private data on ``soundPID``, with a PTS on the same clock and a control header
/// (ETSI's draft "Opus Interactive Audio Codec; Transport Multiplexing" 0.1.3). A stream has sound from its beginning or
/// never, so the PMT has one version.
public struct TransportStreamMuxer: Sendable {
  /// The number of bytes of a transport stream packet.
  public static let packetBytes = 188
  /// The PID of the video and of the clock.
  public static let videoPID: UInt16 = 0x100
  /// The PID of the sound.
  public static let soundPID: UInt16 = 0x101
  /// The PID of the PMT.
  public static let programMapPID: UInt16 = 0x1000
  /// The delay of a picture's presentation after the program clock: 50 ms to encode, send and decode it.
  public static let presentationDelay = Duration.milliseconds(50)
  /// The delay of the presentation of a stream with sound: an Opus packet of 20 ms leaves up to 45 ms after its first
  /// sample, and must not come behind the clock.
  public static let presentationDelayWithSound = Duration.milliseconds(100)
  /// The maximum time between two PAT and PMT, and between two PCR (section 2.7.2), if frames or calls of
  /// ``clockPacket(at:into:)`` are frequent enough.
  public static let tableInterval = Duration.milliseconds(100)

  static let syncByte: UInt8 = 0x47
  /// The `stream_id` of the first video, and of private data with a PES header: table 2-22.
  private static let (videoStreamID, privateStreamID) = (UInt8(0xe0), UInt8(0xbd))
  /// Returns an access unit delimiter for any slice type: H.264 section 7.3.2.4, H.265 section 7.3.2.5.
  private static func delimiter(of codec: VideoCodec) -> [UInt8] {
    switch codec {
    case .h264: [0, 0, 0, 1, 0x09, 0xf0]
    case .hevc: [0, 0, 0, 1, 0x46, 0x01, 0x50]
    }
  }

  /// The result of writing one access unit.
  struct Muxed {
    /// The range of its packets in the arena.
    var range: Range<Int>
    /// The arrival time of the first byte on the program clock.
    var clock: Instant
    /// `true` if the clock starts or restarts here.
    var isDiscontinuous: Bool
  }

  private let codec: VideoCodec
  private let delimiter: [UInt8]
  private let map: [UInt8]
  private let hasSound: Bool
  private let delay: Duration
  private var associationCounter: UInt8 = 0
  private var mapCounter: UInt8 = 0
  private var videoCounter: UInt8 = 0
  private var soundCounter: UInt8 = 0
  private var lastUnit: Instant?
  private var lastClock: Instant?
  private var lastTables: Instant?

  /// Creates a muxer at the start of a stream.
  ///
  /// - Parameters:
  ///   - codec: The codec of the video.
  ///   - sound: The channels of the sound; `nil` without sound.
  public init(codec: VideoCodec = .h264, sound: OpusChannels? = nil) {
    self.codec = codec
    delimiter = Self.delimiter(of: codec)
    map = ProgramTables.map(codec: codec, sound: sound)
    hasSound = sound != nil
    delay = sound == nil ? Self.presentationDelay : Self.presentationDelayWithSound
  }

  /// Appends the packets of `unit`, a picture, to `arena`.
  public mutating func mux(_ unit: borrowing AccessUnit, into arena: inout ByteArena) {
    _ = write(unit, into: &arena)
  }

  /// Appends the packets of `unit`, whose first unit is an Opus packet, to `arena`. Appends nothing if the stream has no
  /// sound.
  ///
  /// `unit` has the timestamp of its first sample, on the timeline of the pictures. It need not wait for a picture.
  /// If none comes, PAT and PMT come with the sound. The program clock does not; see ``clockPacket(at:into:)``.
  public mutating func mux(sound unit: borrowing AccessUnit, into arena: inout ByteArena) {
    _ = write(sound: unit, into: &arena)
  }

  /// Appends a packet with only the program clock, and PAT and PMT if they are due. Returns `false` and appends
  /// nothing if the clock has reached `time` already.
  ///
  /// Use it for a stream slower than 10 frames per second, which would lack PCR (section 2.7.2). `time` is on the
  /// timeline of the access units, and should not exceed the time of the next picture. Use the last picture's
  /// timestamp plus a multiple of less than 100 ms.
  @discardableResult
  public mutating func clockPacket(at time: Instant, into arena: inout ByteArena) -> Bool {
    writeClock(at: time, into: &arena) != nil
  }

  mutating func writeClock(at time: Instant, into arena: inout ByteArena) -> Muxed? {
    if let lastClock, time <= lastClock { return nil }
    let isFirst = lastClock == nil
    arena.reserve(3 * Self.packetBytes)
    let start = arena.count
    if tablesAreDue(at: time) { writeTables(at: time, into: &arena) }
    let memory = arena.address(of: arena.extend(by: Self.packetBytes))
    // A packet without payload keeps the counter of the packet before (section 2.4.3.3).
    TransportPacketHeader(
      pid: Self.videoPID, isStart: false, control: 0x20, counter: (videoCounter &- 1) & 0x0f
    ).write(to: memory)
    AdaptationField(clock: ProgramClock.reading(at: time)).write(to: memory + 4, count: Self.packetBytes - 4)
    lastClock = time
    return Muxed(range: start..<arena.count, clock: time, isDiscontinuous: isFirst)
  }

  mutating func write(_ unit: borrowing AccessUnit, into arena: inout ByteArena) -> Muxed {
    let time = unit.timestamp
    // Time that runs backwards means another timeline; a long pause does not.
    let isRestart = if let lastUnit { time < lastUnit } else { false }
    let isFirst = lastClock == nil
    if isRestart {
      lastClock = nil
      lastTables = nil
    }
    let tablesNow = unit.isKeyFrame || tablesAreDue(at: time)
    let start = arena.count
    if tablesNow { writeTables(at: time, into: &arena) }
    var field = AdaptationField(isDiscontinuous: isRestart, isRandomAccess: unit.isKeyFrame)
    // The clock may have been sent separately for a time after the capture of the picture. It must not run backwards.
    let clock = if let lastClock { max(time, lastClock) } else { time }
    if lastClock == nil || clock != lastClock { field.clock = ProgramClock.reading(at: clock) }
    writeVideo(unit, field: field, into: &arena)
    lastUnit = time
    lastClock = clock
    return Muxed(range: start..<arena.count, clock: clock, isDiscontinuous: isFirst || isRestart)
  }

  /// Returns nil, and writes nothing, for a sound that the stream cannot have.
  mutating func write(sound unit: borrowing AccessUnit, into arena: inout ByteArena) -> Muxed? {
    guard hasSound, let packet = unit.nalUnits.first?.bytes else { return nil }
    let control = OpusControlHeader(packetBytes: packet.count)
    let dataBytes = control.byteCount + packet.count
    guard dataBytes <= PESHeader.dataLimit else { return nil }
    let start = arena.count
    if tablesAreOverdue(at: unit.timestamp) { writeTables(at: unit.timestamp, into: &arena) }
    var writer = PESWriter(
      pid: Self.soundPID, counter: soundCounter, byteCount: PESHeader.byteCount + dataBytes, in: &arena)
    writer.write(
      PESHeader(
        streamID: Self.privateStreamID, dataBytes: dataBytes, timestamp: presentation(of: unit.timestamp)),
      into: &arena)
    control.write(with: &writer, into: &arena)
    writer.write(packet, into: &arena)
    soundCounter = writer.counter
    return Muxed(range: start..<arena.count, clock: lastClock ?? unit.timestamp, isDiscontinuous: false)
  }

  /// Returns `true` if pictures would have brought the tables long ago. Twice ``tableInterval``, because the sound of
  /// `time` may have been encoded sooner or later than the picture of that time.
  private func tablesAreOverdue(at time: Instant) -> Bool {
    guard let lastTables else { return true }
    return (time.nanoseconds &- lastTables.nanoseconds).magnitude > 2 * Self.tableInterval.nanoseconds.magnitude
  }

  /// Returns `true` if the next access unit would be too late for the tables.
  private func tablesAreDue(at time: Instant) -> Bool {
    guard let lastTables else { return true }
    let pace = if let lastUnit { time.nanoseconds &- lastUnit.nanoseconds } else { Int64(0) }
    return (time.nanoseconds &- lastTables.nanoseconds) &+ pace > Self.tableInterval.nanoseconds
  }

  private mutating func writeTables(at time: Instant, into arena: inout ByteArena) {
    writeTable(ProgramTables.association, counter: associationCounter, into: &arena)
    writeTable(map, counter: mapCounter, into: &arena)
    associationCounter = (associationCounter &+ 1) & 0x0f
    mapCounter = (mapCounter &+ 1) & 0x0f
    lastTables = time
  }

  private func writeTable(_ packet: [UInt8], counter: UInt8, into arena: inout ByteArena) {
    let memory = arena.address(of: arena.extend(by: Self.packetBytes))
    packet.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(start: memory, count: Self.packetBytes).copyMemory(from: $0)
    }
    memory.storeBytes(of: 0x10 | counter, toByteOffset: 3, as: UInt8.self)
  }

  /// Writes the PES packet of `unit`, with `field` in the first transport packet.
  private mutating func writeVideo(
    _ unit: borrowing AccessUnit, field: AdaptationField, into arena: inout ByteArena
  ) {
    var byteCount = PESHeader.byteCount + delimiter.count
    for nal in unit.nalUnits where codec.role(of: nal) != .accessUnitDelimiter {
      byteCount += AnnexB.startCode.count + nal.bytes.count
    }
    var writer = PESWriter(
      pid: Self.videoPID, counter: videoCounter, byteCount: byteCount, field: field, in: &arena)
    writer.write(
      PESHeader(streamID: Self.videoStreamID, dataBytes: nil, timestamp: presentation(of: unit.timestamp)),
      into: &arena)
    delimiter.withUnsafeBytes { writer.write($0, into: &arena) }
    AnnexB.startCode.withUnsafeBytes { startCode in
      for nal in unit.nalUnits where codec.role(of: nal) != .accessUnitDelimiter {
        writer.write(startCode, into: &arena)
        writer.write(nal.bytes, into: &arena)
      }
    }
    videoCounter = writer.counter
  }

  /// Returns the PTS of an access unit of `time`.
  private func presentation(of time: Instant) -> UInt64 {
    ProgramClock.timestamp(of: Instant(nanoseconds: time.nanoseconds &+ delay.nanoseconds))
  }
}
