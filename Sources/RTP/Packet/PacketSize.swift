public import Platform

/// The sizes of whole RTP packets, RTP header included, IP and UDP headers excluded.
public enum PacketSize {
  /// A size that fits every usual path without IP fragmentation, tunnels and IPv6 included.
  public static let standard = 1200
  /// The smallest size: below, the headers outweigh the picture.
  public static let minimum = 128
  /// The largest size: a UDP datagram over IPv4, 65,535 less 20 and 8 bytes of headers.
  public static let maximum = 65_507

  /// Returns `size`.
  ///
  /// - Throws: ``PacketizerError`` for a size outside `limits`.
  static func checked(_ size: Int, _ limits: ClosedRange<Int>) throws(PacketizerError) -> Int {
    guard limits.contains(size) else { throw .packetSize(size, limits: limits) }
    return size
  }
}

/// The reason why a packetizer could not be created.
public enum PacketizerError: Failure, Hashable {
  /// The packet size is out of range.
  case packetSize(Int, limits: ClosedRange<Int>)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .packetSize(let size, let limits):
      "RTP packets of \(size) bytes: choose \(limits.lowerBound) to \(limits.upperBound)"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .usage }
}
