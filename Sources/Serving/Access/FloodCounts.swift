/// The counts of one kind of event by its origin. Beyond a limit, further origins share one count.
struct FloodCounts<Origin: Hashable> {
  private let limit: Int
  private var counts: [Origin: Int] = [:]

  /// Creates empty counts of at most `limit` origins.
  init(limit: Int) { self.limit = limit }

  /// `true` if nothing was counted since the last ``take()``.
  var isEmpty: Bool { counts.isEmpty }

  /// Counts one event of `origin`, or of `others` where there are too many origins.
  mutating func add(_ origin: Origin, orElse others: Origin) {
    let isKnown = counts[origin] != nil || counts.count < limit
    counts[isKnown ? origin : others, default: 0] += 1
  }

  /// Returns the counts since the last call.
  mutating func take() -> [Origin: Int] {
    defer { counts.removeAll() }
    return counts
  }
}
