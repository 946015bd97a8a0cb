public import Media
import RTP

/// Why a `KeyMgmt` header is not taken.
public enum KeyManagementError: Failure, Hashable {
  /// It is not written as RFC 4567 section 4.1.2 says, is there twice, or is of another protocol than MIKEY.
  case field(String)

  /// One line for the log.
  public var description: String {
    switch self {
    case .field(let what): "\(what) in a KeyMgmt header; send prot=mikey;uri=\"URL\";data=\"BASE64\" once"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .data }
}

/// The `KeyMgmt` header of RTSP, RFC 4567 section 4.1.2: a key that goes along with SETUP. What it says is for
/// `MIKEYMessage` to read.
public struct KeyManagementField: Hashable, Sendable, CustomStringConvertible {
  /// The URL that it belongs to.
  public var url: String
  /// The MIKEY message in base64.
  public var data: String

  /// A field; see the properties.
  public init(url: String, data: String) {
    self.url = url
    self.data = data
  }

  /// The field of a request; nil where there is none.
  ///
  /// - Throws: ``KeyManagementError``.
  public init?(_ request: Request) throws(KeyManagementError) {
    let values = request.headers.values(of: "KeyMgmt")
    guard let value = values.first else { return nil }
    guard values.count == 1, value.unquotedParts(at: UInt8(ascii: ",")).count == 1 else { throw .field("several keys") }
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

  /// As in the header.
  public var description: String { "prot=mikey;uri=\"\(url)\";data=\"\(data)\"" }
}
