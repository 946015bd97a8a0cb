/// The bytes from one report to the next.
package struct ReportSteps {
  private var last: Int?
  private var mean = 0.0
  private var alike = 0
  /// The times of the steps that are alike, in seconds.
  private var times = (shortest: Double.infinity, longest: 0.0)
  /// The longest time between two reports in seconds; it is forgotten slowly.
  package private(set) var longest = 0.0

  /// The most bytes between two reports; they are forgotten slowly.
  private(set) var largest = 0.0

  /// Creates a record without reports.
  package init() {}

  /// The bytes after which the viewer always reports; nil where it does not.
  package var usual: Int? { alike >= Self.enough && mean >= 1 ? Int(mean) : nil }

  /// `true` if the viewer certainly reports by bytes: its steps are alike, and the times between them are not.
  package var countsBytes: Bool { alike >= Self.enough && times.longest > times.shortest * Self.unlike }

  /// The steps in a row that must be alike, and by how much they may differ.
  private static let enough = 4
  private static let tolerance = 0.05
  /// The ratio of two times that are not alike.
  private static let unlike = 1.3
  /// The most steps in one, where reports between were lost.
  private static let lost = 3.0
  /// The share of ``longest`` and ``largest`` that a report leaves.
  private static let remembered = 0.95

  /// Takes the bytes that have arrived so far, `seconds` after the report before.
  package mutating func note(_ delivered: Int, after seconds: Double) {
    defer { last = delivered }
    guard let last else { return }
    longest = max(seconds, longest * Self.remembered)
    let step = Double(delivered - last)
    largest = max(step, largest * Self.remembered)
    // Who reports by bytes reports when some have come.
    guard step > 0 else { return (alike, mean) = (0, 0) }
    let multiple = usual == nil ? 1 : (step / mean).rounded()
    if (2...Self.lost).contains(multiple), abs(step - mean * multiple) <= mean * multiple * Self.tolerance { return }
    if abs(step - mean) <= mean * Self.tolerance {
      alike += 1
      mean += (step - mean) / 4
      times = (min(times.shortest, seconds), max(times.longest, seconds))
    } else {
      (alike, mean, times) = (0, step, (seconds, seconds))
    }
  }
}
