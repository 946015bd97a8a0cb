import FoundationEssentials
public import Media

/// Why a request is refused: the JSON of an answer that is no success, its keys in `snake_case`.
public struct ControlFailure: Failure, Codable, Hashable {
  /// One line with the value, the limit and the mend.
  public let error: String
  /// ``Media/FailureKind`` by its name here, such as `usage` or `no_permission`.
  public let failure: String
  /// The field that is wrong.
  public let field: String?
  /// What it holds.
  public let value: String?
  /// What it may hold.
  public let limit: String?

  init(_ error: String, kind: FailureKind, field: String? = nil, value: String? = nil, limit: String? = nil) {
    self.error = error
    failure = kind.name
    (self.field, self.value, self.limit) = (field, value, limit)
  }

  /// What the thing controlled has thrown.
  public init(_ error: any Error) {
    switch error {
    case let failure as ControlFailure: self = failure
    case let failure as any Failure: self.init(failure.description, kind: failure.kind)
    default: self.init("\(error)", kind: .software)
    }
  }

  /// One line for the person at the terminal.
  public var description: String { error }

  /// This as the API answers it: one line of JSON.
  public var json: String { String(decoding: ControlJSON.encode(self), as: UTF8.self) }

  /// What kind of failure it is.
  public var kind: FailureKind { FailureKind.allNames.first { $0.value == failure }?.key ?? .software }
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

/// How the API writes and reads JSON.
enum ControlJSON {
  /// One line, keys sorted and in `snake_case`.
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // A number that JSON has none for (a rate of 0/0) must not take the whole answer away.
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    // Nothing of ours fails to encode; if it did, whoever asked gets an answer that is JSON all the same.
    guard let data = try? encoder.encode(value) else { return Array(#"{"error":"no JSON","failure":"software"}"#.utf8) }
    return Array(data) + [UInt8(ascii: "\n")]
  }

  /// Reads what ``encode(_:)`` has written.
  static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    return try decoder.decode(type, from: Data(bytes))
  }
}
