package import Platform
import RTP

/// The header extension with the time at which a packet was sent (abs-send-time, draft-alvestrand-rmcat-remb-03
/// section 3), by which a browser measures queues.
package struct SendTimeExtension {
  private let number: UInt8
  /// The times of the last packets, by their numbers. A packet that is encrypted again must be the same: two under one
  /// keystream would reveal the key of its tag.
  private var times: [UInt32]
  private var newest: UInt16?

  /// The bytes by which a packet grows: the header of extensions of one byte (RFC 8285 section 4.2), and the extension.
  static let byteCount = 8

  /// Creates an extension.
  ///
  /// - Parameters:
  ///   - number: its number, 1 to 14.
  ///   - repeatable: the number of last packets of which one may be encrypted again.
  init(number: UInt8, repeatable: Int) {
    self.number = number
    var size = 1
    while size < repeatable { size *= 2 }
    times = Array(repeating: 0, count: size)
  }

  /// Puts the extension behind the header of a packet of `count` bytes that has none, and has room.
  ///
  /// - Parameter number: the packet's number in its stream; nil for a packet that is never encrypted again.
  mutating func insert(into memory: UnsafeMutableRawPointer, count: Int, number: UInt16?) {
    let time = time(of: number)
    let header = RTPHeader.byteCount
    (memory + header + Self.byteCount).copyMemory(from: memory + header, byteCount: count - header)
    let first = memory.load(as: UInt8.self)
    memory.storeBytes(of: first | 0x10, as: UInt8.self)
    memory.storeBytes(of: UInt32(0xbede_0001).bigEndian, toByteOffset: header, as: UInt32.self)
    // The upper half of the first byte is the number, the lower one the length less one.
    let value = UInt32(self.number) << 28 | 2 << 24 | time
    memory.storeBytes(of: value.bigEndian, toByteOffset: header + 4, as: UInt32.self)
  }

  /// Returns the time of a packet: the present one, or that of its first encryption.
  private mutating func time(of number: UInt16?) -> UInt32 {
    guard let number else { return Self.time(at: .now()) }
    let place = Int(number) & (times.count - 1)
    let isNew = newest.map { Int16(bitPattern: number &- $0) > 0 } ?? true
    if isNew { (newest, times[place]) = (number, Self.time(at: .now())) }
    return times[place]
  }

  /// Returns a time in 24 bits: seconds in six, and fractions in eighteen.
  package static func time(at now: Instant) -> UInt32 {
    let (seconds, rest) = now.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return UInt32(truncatingIfNeeded: seconds & 0x3f) << 18 | UInt32(truncatingIfNeeded: (rest << 18) / 1_000_000_000)
  }
}
