import Foundation

/// The JSON of an HTTP answer that is no success.
struct FailureAnswer: Decodable {
  /// The reason in a line, with what would help.
  let error: String
  /// The kind of failure, such as `usage`.
  let failure: String
  /// The field that is wrong; nil for none.
  let field: String?

  init(_ body: some Sequence<UInt8>) throws {
    self = try JSONDecoder().decode(Self.self, from: Data(body))
  }
}
