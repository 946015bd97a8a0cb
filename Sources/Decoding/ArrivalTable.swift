import Platform

/// The times of the access units, by their numbers, for pictures that come out later. It holds as many as a decoder may hold
/// back.
struct ArrivalTable {
  private var entries: [(timestamp: Instant, captured: Instant)] = []
  private var next: Int64 = 0

  /// A decoded picture buffer has at most 16 frames, each of two fields.
  private static let capacity = 64

  /// Notes an access unit, in place of the oldest, and returns its number.
  mutating func add(_ timestamp: Instant, _ captured: Instant) -> Int64 {
    defer { next += 1 }
    if entries.count < Self.capacity {
      entries.append((timestamp, captured))
    } else {
      entries[Int(next) % Self.capacity] = (timestamp, captured)
    }
    return next
  }

  /// Returns the times of the access unit of this number; nil where they are not known any more.
  func times(of number: Int64) -> (timestamp: Instant, captured: Instant)? {
    guard number >= 0, number < next, next - number <= Self.capacity else { return nil }
    return entries[Int(number) % Self.capacity]
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
