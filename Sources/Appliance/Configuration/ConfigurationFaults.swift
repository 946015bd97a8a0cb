/// The mistakes of a configuration, in the order in which they are found, and the values that are unknown because of
/// them.
package struct ConfigurationFaults: Sendable {
  /// The errors, one line each.
  package private(set) var errors: [ConfigurationError] = []
  /// The options whose value is wrong or unreadable. If such an option is missing or contradicts another, that is a
  /// consequence and no separate mistake.
  package private(set) var lost: Set<String> = []
  /// `true` if tables are missing, so that cameras cannot be compared.
  package private(set) var lacksTables = false
  /// The limit of mistakes.
  let limit: Int

  /// The default limit of mistakes, more than people read.
  package static let usualLimit = 50

  /// Creates an empty list.
  package init(limit: Int = Self.usualLimit) { self.limit = limit }

  /// `true` if the limit of mistakes is reached.
  package var isFull: Bool { errors.count >= limit }

  /// Adds a mistake and the options that it makes unknown; a mistake that is already present is not repeated.
  package mutating func add(_ error: ConfigurationError, lost options: Set<String> = []) {
    if !isFull, !errors.contains(error) { errors.append(error) }
    lose(options)
  }

  /// Adds options whose value is unknown.
  package mutating func lose(_ options: Set<String>) { lost.formUnion(options) }

  /// Records that tables are missing.
  mutating func loseTables() { lacksTables = true }

  /// Sorts the mistakes in the order of the file.
  mutating func sort() { errors = sorted }

  /// The mistakes by line; those without a line come last.
  package var sorted: [ConfigurationError] {
    errors.enumerated().sorted {
      let (left, right) = ($0.element.line ?? .max, $1.element.line ?? .max)
      return left == right ? $0.offset < $1.offset : left < right
    }.map(\.element)
  }
}
