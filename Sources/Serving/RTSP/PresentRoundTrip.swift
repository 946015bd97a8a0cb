package import Platform

/// The round trip of a connection at present, without most of the queue that the connection itself makes.
///
/// The kernel remembers the shortest round trip for five minutes (`net.ipv4.tcp_min_rtt_wlen`). A path that gets longer meanwhile,
/// by another route or by others' traffic, takes less than the limit if only the bytes of the shortest round trip are on their way.
/// The limit would follow that, and so on down. So this value follows the smoothed round trip: down at once, and up slowly, because
/// the queue behind a key frame looks the same and is soon over.
package struct PresentRoundTrip {
  /// The length in seconds; zero before the first.
  package private(set) var seconds = 0.0
  private var noted: Instant?

  /// The most seconds by which the value grows in a second.
  static let rise = 0.2

  /// Creates a value of zero.
  package init() {}

  /// Takes what the kernel tells, in seconds.
  package mutating func note(smoothed: Double, shortest: Double, at now: Instant) {
    let elapsed = noted.map { max(0, (now - $0).seconds) } ?? 0
    noted = now
    seconds = max(shortest, min(smoothed, seconds + Self.rise * elapsed))
  }
}
