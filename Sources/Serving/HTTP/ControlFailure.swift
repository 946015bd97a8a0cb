import FoundationEssentials
package import Platform

/// The reason for a refusal: the JSON of an answer that is no success, its keys in `snake_case`.
package struct ControlFailure: Failure, Codable, Hashable {
  /// One line with the value, the limit and the remedy.
  package let error: String
  /// The name of ``Media/FailureKind``, such as `usage` or `no_permission`.
  package let failure: String
  /// The field that is wrong.
  package let field: String?
  /// The value of the field.
  package let value: String?
  /// The allowed values of the field.
  package let limit: String?

  init(_ error: String, kind: FailureKind, field: String? = nil, value: String? = nil, limit: String? = nil) {
    self.error = error
    failure = kind.name
    (self.field, self.value, self.limit) = (field, value, limit)
  }

  /// Creates a failure from an error of the control target.
  package init(_ error: any Error) {
    switch error {
    case let failure as ControlFailure: self = failure
    case let failure as any Failure: self.init(failure.description, kind: failure.kind)
    default: self.init("\(error)", kind: .software)
    }
  }

  /// One line for the user at the terminal.
  package var description: String { error }

  /// The failure as the API answers it: one line of JSON.
  package var json: String { String(decoding: ControlJSON.encode(self), as: UTF8.self) }

  /// The failure's kind.
  package var kind: FailureKind { FailureKind.allNames.first { $0.value == failure }?.key ?? .software }
}

extension FailureKind {
  fileprivate static let allNames: [FailureKind: String] = [
    .usage: "usage", .data: "data", .noInput: "no_input", .noHost: "no_host", .unavailable: "unavailable",
    .software: "software", .system: "system", .cannotCreate: "cannot_create", .inputOutput: "input_output",
    .temporary: "temporary", .noPermission: "no_permission",
  ]

  /// The name in the API.
  fileprivate var name: String { Self.allNames[self] ?? "software" }
}

/// The JSON format of the API.
enum ControlJSON {
  /// Returns one line of JSON, its keys sorted and in `snake_case`.
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // A number that JSON cannot express (a rate of 0/0) must not lose the whole answer.
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    // None of our types fails to encode; if one did, the client still gets an answer in JSON.
    guard let data = try? encoder.encode(value) else { return Array(#"{"error":"no JSON","failure":"software"}"#.utf8) }
    return Array(data) + [UInt8(ascii: "\n")]
  }

  /// Decodes the output of ``encode(_:)``.
  static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    return try decoder.decode(type, from: Data(bytes))
  }
}
