extension StreamStatus {
  /// A destination that the stream does not reach yet.
  package struct MissingDestination: Codable, Hashable, Sendable {
    /// The destination's URL.
    package var url: String
    /// The reason; nil before the first attempt has ended.
    package var reason: String?

    /// Creates an entry; see the properties.
    package init(url: String, reason: String?) { (self.url, self.reason) = (url, reason) }
  }
}
