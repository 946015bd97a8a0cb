package import Platform

extension Instant {
  /// Creates the point `seconds` after the clock's start.
  package init(seconds: Double) { self = .zero + Duration(seconds: seconds) }
}
