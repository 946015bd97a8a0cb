public import Media

/// Writes access units as an MPEG-2 transport stream of one H.264 video, ISO/IEC 13818-1.
///
/// Every access unit is one PES packet of unbounded length with a PTS, an access unit delimiter first. The program
/// clock (PCR) goes with every access unit on the video's PID, PAT and PMT with every key frame and at least every
/// ``tableInterval``.
///
/// The clock says when an access unit's picture was taken, and the PTS follows it by ``presentationDelay``.
public struct TransportStreamMuxer: Sendable {
  /// Bytes in a transport stream packet.
  public static let packetBytes = 188
  /// The PID of the video and of the clock.
  public static let videoPID: UInt16 = 0x100
  /// The PID of the PMT.
  public static let programMapPID: UInt16 = 0x1000
  /// How long after the program clock a picture is due: 50 ms for encoding, sending and decoding it.
  public static let presentationDelay = MediaTime(nanoseconds: 50_000_000)
  /// The longest time between two PAT and PMT, and between two PCR (section 2.7.2), where frames or calls of
  /// ``clockPacket(at:into:)`` come often enough.
  public static let tableInterval = MediaTime(nanoseconds: 100_000_000)

  static let syncByte: UInt8 = 0x47
  /// PES header with a PTS (section 2.4.3.6), then an access unit delimiter for any slice type (H.264 7.3.2.4).
  private static let unitStart: [UInt8] = [
    0, 0, 1, 0xe0, 0, 0, 0x84, 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x09, 0xf0,
  ]

  /// What an access unit became.
  struct Muxed {
    /// Where its packets lie in the arena.
    var range: Range<Int>
    /// When the first byte is to arrive by the program clock.
    var clock: MediaTime
    /// Whether the clock starts here, or starts anew.
    var isDiscontinuous: Bool
  }

  private var associationCounter: UInt8 = 0
  private var mapCounter: UInt8 = 0
  private var videoCounter: UInt8 = 0
  private var lastUnit: MediaTime?
  private var lastClock: MediaTime?
  private var lastTables: MediaTime?

  /// A muxer at the start of a stream.
  public init() {}

  /// Appends the packets of `unit` to `arena`.
  public mutating func mux(_ unit: borrowing AccessUnit, into arena: inout ByteArena) {
    _ = write(unit, into: &arena)
  }

  /// Appends a packet with nothing but the program clock, and PAT and PMT where they are due; false and nothing
  /// where the clock was already there.
  ///
  /// For a stream slower than 10 frames a second, in which PCR would be missing (section 2.7.2). `time` is on the
  /// timeline of the access units and should not run ahead of the picture that comes next: the last picture's
  /// timestamp and a multiple of less than 100 ms.
  @discardableResult
  public mutating func clockPacket(at time: MediaTime, into arena: inout ByteArena) -> Bool {
    writeClock(at: time, into: &arena) != nil
  }

  mutating func writeClock(at time: MediaTime, into arena: inout ByteArena) -> Muxed? {
    if let lastClock, time <= lastClock { return nil }
    let isFirst = lastClock == nil
    arena.reserve(3 * Self.packetBytes)
    let start = arena.count
    if tablesAreDue(at: time) { writeTables(at: time, into: &arena) }
    let memory = arena.address(of: arena.extend(by: Self.packetBytes))
    // No payload: the counter keeps the value of the packet before (section 2.4.3.3).
    writeHeader(to: memory, isStart: false, control: 0x20, counter: (videoCounter &- 1) & 0x0f)
    AdaptationField(clock: ProgramClock.reading(at: time)).write(to: memory + 4, count: Self.packetBytes - 4)
    lastClock = time
    return Muxed(range: start..<arena.count, clock: time, isDiscontinuous: isFirst)
  }

  mutating func write(_ unit: borrowing AccessUnit, into arena: inout ByteArena) -> Muxed {
    let time = unit.timestamp
    // Time that runs backwards is another timeline; time that stood still for long is not.
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
    // The clock may have gone out by itself for a time after the picture was taken; it must not run backwards.
    let clock = if let lastClock { max(time, lastClock) } else { time }
    if lastClock == nil || clock != lastClock { field.clock = ProgramClock.reading(at: clock) }
    writeVideo(unit, field: field, into: &arena)
    lastUnit = time
    lastClock = clock
    return Muxed(range: start..<arena.count, clock: clock, isDiscontinuous: isFirst || isRestart)
  }

  /// Whether waiting for one more access unit would make the tables late.
  private func tablesAreDue(at time: MediaTime) -> Bool {
    guard let lastTables else { return true }
    let pace = if let lastUnit { time.nanoseconds &- lastUnit.nanoseconds } else { Int64(0) }
    return (time.nanoseconds &- lastTables.nanoseconds) &+ pace > Self.tableInterval.nanoseconds
  }

  private mutating func writeTables(at time: MediaTime, into arena: inout ByteArena) {
    writeTable(ProgramTables.association, counter: associationCounter, into: &arena)
    writeTable(ProgramTables.map, counter: mapCounter, into: &arena)
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

  private func writeHeader(to memory: UnsafeMutableRawPointer, isStart: Bool, control: UInt8, counter: UInt8) {
    memory.storeBytes(of: Self.syncByte, as: UInt8.self)
    memory.storeBigEndian(Self.videoPID | (isStart ? 0x4000 : 0), at: 1)
    memory.storeBytes(of: control | counter, toByteOffset: 3, as: UInt8.self)
  }

  /// The PES packet of `unit`, the first transport packet with `field`.
  private mutating func writeVideo(
    _ unit: borrowing AccessUnit, field: AdaptationField, into arena: inout ByteArena
  ) {
    var rest = Self.unitStart.count
    for nal in unit.nalUnits where nal.type != .accessUnitDelimiter {
      rest += AnnexB.startCode.count + nal.bytes.count
    }
    arena.reserve((rest + field.byteCount + 183) / 184 * Self.packetBytes)
    var writer = PESWriter(rest: rest, field: field)
    let due = MediaTime(nanoseconds: unit.timestamp.nanoseconds &+ Self.presentationDelay.nanoseconds)
    let timestamp = ProgramClock.timestamp(of: due)
    Self.unitStart.withUnsafeBytes { start in
      write(UnsafeRawBufferPointer(rebasing: start[..<9]), with: &writer, into: &arena)
      withUnsafeBytes(of: Self.presentationTimestamp(timestamp)) { mark in
        // An InlineArray has no padding: five bytes.
        write(mark, with: &writer, into: &arena)
      }
      write(UnsafeRawBufferPointer(rebasing: start[14...]), with: &writer, into: &arena)
    }
    AnnexB.startCode.withUnsafeBytes { startCode in
      for nal in unit.nalUnits where nal.type != .accessUnitDelimiter {
        write(startCode, with: &writer, into: &arena)
        write(nal.bytes, with: &writer, into: &arena)
      }
    }
  }

  /// The five bytes of a PTS without DTS, section 2.4.3.6.
  private static func presentationTimestamp(_ value: UInt64) -> InlineArray<5, UInt8> {
    [
      0x21 | UInt8(truncatingIfNeeded: value >> 29) & 0x0e,
      UInt8(truncatingIfNeeded: value >> 22),
      UInt8(truncatingIfNeeded: value >> 14) | 1,
      UInt8(truncatingIfNeeded: value >> 7),
      UInt8(truncatingIfNeeded: value << 1) | 1,
    ]
  }

  /// Where the next byte of a PES packet goes.
  private struct PESWriter {
    /// Bytes still to be written.
    var rest: Int
    /// What the next transport packet's adaptation field says.
    var field: AdaptationField
    var isStart = true
    /// The place in the current transport packet, and the room there.
    var place: UnsafeMutableRawPointer?
    var room = 0
  }

  private mutating func write(
    _ bytes: UnsafeRawBufferPointer, with writer: inout PESWriter, into arena: inout ByteArena
  ) {
    var source = bytes
    while !source.isEmpty {
      if writer.room == 0 { startPacket(with: &writer, into: &arena) }
      guard let place = writer.place else { return }
      let length = min(writer.room, source.count)
      UnsafeMutableRawBufferPointer(start: place, count: length).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: source[..<length]))
      source = UnsafeRawBufferPointer(rebasing: source[length...])
      writer.place = place + length
      writer.room -= length
      writer.rest -= length
    }
  }

  /// Header and adaptation field of the next packet; the field is stuffed so that the payload ends with the packet.
  private mutating func startPacket(with writer: inout PESWriter, into arena: inout ByteArena) {
    let memory = arena.address(of: arena.extend(by: Self.packetBytes))
    let largest = Self.packetBytes - 4
    let room = min(writer.rest, largest - writer.field.byteCount)
    let fieldBytes = largest - room
    writeHeader(
      to: memory, isStart: writer.isStart, control: fieldBytes > 0 ? 0x30 : 0x10, counter: videoCounter)
    writer.field.write(to: memory + 4, count: fieldBytes)
    videoCounter = (videoCounter &+ 1) & 0x0f
    writer.place = memory + 4 + fieldBytes
    writer.room = room
    writer.field = AdaptationField()
    writer.isStart = false
  }
}
