/// The writer of one PES packet, cut into transport packets of one PID.
///
/// It keeps an address in the arena: nothing else is appended to the arena until all bytes are written.
struct PESWriter {
  private static let largest = TransportStreamMuxer.packetBytes - 4

  /// The continuity counter of the next transport packet.
  private(set) var counter: UInt8
  private let pid: UInt16
  /// The number of bytes still to be written.
  private var rest: Int
  /// The adaptation field of the next transport packet.
  private var field: AdaptationField
  private var isStart = true
  /// The position in the current transport packet, and the room left there.
  private var place: UnsafeMutableRawPointer?
  private var room = 0

  /// Creates the writer of exactly `byteCount` bytes, and makes room for them in `arena`. The first transport packet
  /// has `counter` and `field`.
  init(
    pid: UInt16, counter: UInt8, byteCount: Int, field: AdaptationField = AdaptationField(),
    in arena: inout ByteArena
  ) {
    self.pid = pid
    self.counter = counter
    self.field = field
    rest = byteCount
    arena.reserve((byteCount + field.byteCount + Self.largest - 1) / Self.largest * TransportStreamMuxer.packetBytes)
  }

  /// Writes the header of the PES packet.
  mutating func write(_ header: PESHeader, into arena: inout ByteArena) {
    // An InlineArray has no padding.
    withUnsafeBytes(of: header.bytes) { write($0, into: &arena) }
  }

  /// Writes the next bytes of the PES packet.
  mutating func write(_ bytes: UnsafeRawBufferPointer, into arena: inout ByteArena) {
    var source = bytes
    while !source.isEmpty {
      if room == 0 { startPacket(into: &arena) }
      guard let place else { return }
      let length = min(room, source.count)
      UnsafeMutableRawBufferPointer(start: place, count: length).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: source[..<length]))
      source = UnsafeRawBufferPointer(rebasing: source[length...])
      self.place = place + length
      room -= length
      rest -= length
    }
  }

  /// Writes the header and the adaptation field of the next packet. Stuffing in the field makes the payload end with
  /// the packet.
  private mutating func startPacket(into arena: inout ByteArena) {
    let memory = arena.address(of: arena.extend(by: TransportStreamMuxer.packetBytes))
    room = min(rest, Self.largest - field.byteCount)
    let fieldBytes = Self.largest - room
    TransportPacketHeader(pid: pid, isStart: isStart, control: fieldBytes > 0 ? 0x30 : 0x10, counter: counter)
      .write(to: memory)
    field.write(to: memory + 4, count: fieldBytes)
    counter = (counter &+ 1) & 0x0f
    place = memory + 4 + fieldBytes
    field = AdaptationField()
    isStart = false
  }
}
