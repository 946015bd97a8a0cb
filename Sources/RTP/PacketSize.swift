public import Media

/// How large a whole RTP packet may be, its header included, IP and UDP not.
public enum PacketSize {
  /// What fits every usual path without IP fragmentation, tunnels and IPv6 included.
  public static let standard = 1200
  /// The smallest: below, the headers outweigh the picture.
  public static let minimum = 128
  /// The largest: a UDP datagram over IPv4, 65,535 less 20 and 8 bytes of headers.
  public static let maximum = 65_507
}

/// Why a packetizer could not be made.
public enum PacketizerError: Failure, Hashable {
  /// The packet size is out of range.
  case packetSize(Int, limits: ClosedRange<Int>)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .packetSize(let size, let limits):
      "RTP packets of \(size) bytes: choose \(limits.lowerBound) to \(limits.upperBound)"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .usage }
}
