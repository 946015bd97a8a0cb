public import Platform
import RTP

/// The reason why a `KeyMgmt` header is refused.
public enum KeyManagementError: Failure, Hashable {
  /// A header that violates RFC 4567 section 4.1.2, occurs twice, or has a protocol other than MIKEY.
  case field(String)

  /// A one-line description for the log.
  public var description: String {
    switch self {
    case .field(let what): "\(what) in a KeyMgmt header; send prot=mikey;uri=\"URL\";data=\"BASE64\" once"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}

/// The `KeyMgmt` header of RTSP, RFC 4567 section 4.1.2: a key sent with SETUP. `MIKEYMessage` parses its data.
public struct KeyManagementField: Hashable, Sendable, CustomStringConvertible {
  /// The URL that the key belongs to.
  public var url: String
  /// The MIKEY message in base64.
  public var data: String

  /// Creates a field; see the properties.
  public init(url: String, data: String) {
    self.url = url
    self.data = data
  }

  /// Parses the field of a request; `nil` if there is none.
  ///
  /// - Throws: ``KeyManagementError``.
  public init?(_ request: Request) throws(KeyManagementError) {
    let values = request.headers.values(of: "KeyMgmt")
    guard let value = values.first else { return nil }
    guard values.count == 1 else { throw .field("several keys") }
    try self.init(parsing: value)
  }

  /// Parses the value of a field.
  ///
  /// - Throws: ``KeyManagementError``.
  public init(parsing value: String) throws(KeyManagementError) {
    guard value.unquotedParts(at: UInt8(ascii: ",")).count == 1 else { throw .field("several keys") }
    var fields: [String: String] = [:]
    for part in value.unquotedParts(at: UInt8(ascii: ";")) {
      guard let equals = part.firstIndex(of: "=") else { throw .field(excerpt(part)) }
      var text = part[part.index(after: equals)...].trimmed
      if text.hasPrefix("\""), text.hasSuffix("\""), text.utf8.count >= 2 { text = String(text.dropFirst().dropLast()) }
      let name = part[..<equals].trimmed.asciiLowercased
      guard fields.updateValue(text, forKey: name) == nil else { throw .field("\(excerpt(name)) twice") }
    }
    guard fields["prot"]?.asciiLowercased == "mikey" else {
      throw .field("the protocol \(excerpt(fields["prot"] ?? ""))")
    }
    guard let data = fields["data"], !data.isEmpty else { throw .field("no data=") }
    self.init(url: fields["uri"] ?? "", data: data)
  }

  /// The text as written in the header.
  public var description: String { "prot=mikey;uri=\"\(url)\";data=\"\(data)\"" }
}
