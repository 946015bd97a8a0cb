import Platform

/// The times at which access units were available, by their time stamps, for pictures that come out later. It holds as many
/// as a decoder may hold back.
struct ArrivalTable {
  private var entries: [(timestamp: Int64, captured: Instant)] = []
  private var next = 0

  /// A decoded picture buffer has at most 16 frames, each of two fields.
  private static let capacity = 64

  /// Notes an access unit, in place of the oldest.
  mutating func add(_ timestamp: Int64, _ captured: Instant) {
    if entries.count < Self.capacity {
      entries.append((timestamp, captured))
    } else {
      entries[next] = (timestamp, captured)
      next = (next + 1) % Self.capacity
    }
  }

  /// Returns the time of the access unit with this time stamp; the time stamp itself where it is not known any more.
  func time(of timestamp: Int64) -> Instant {
    entries.last { $0.timestamp == timestamp }?.captured ?? Instant(nanoseconds: timestamp)
  }
}

/// The DRM render nodes of the host.
enum RenderNodes {
  /// The directory with the device files.
  static let directory = "/dev/dri"

  /// Returns the paths of the nodes, in the order of their numbers.
  static func all() -> [String] {
    var names: [String] = []
    Directory.forEachName(in: directory) { if $0.hasPrefix("renderD"), $0.utf8.count == 10 { names.append($0) } }
    return names.sorted().map { "\(directory)/\($0)" }
  }
}
