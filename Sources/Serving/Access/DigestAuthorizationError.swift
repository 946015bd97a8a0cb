package import Platform

/// The reason why the value of an `Authorization` header cannot be parsed as Digest credentials.
package enum DigestAuthorizationError: Failure, Hashable {
  /// A value with too many bytes, by its size.
  case size(Int)
  /// Another scheme than Digest, or nothing after it.
  case scheme
  /// Something that is no parameter, at this byte.
  case syntax(offset: Int)
  /// Too many parameters.
  case parameters
  /// A repeated parameter, by its name.
  case repeated(String)
  /// A missing parameter, by its name.
  case missing(String)
  /// A parameter with an impossible value, by its name.
  case value(String)
  /// A parameter that was not offered, by its name.
  case unsupported(String)

  /// One line; names in it are RFC 9110 tokens of at most ``DigestAuthorization/keyLimit`` characters.
  package var description: String {
    switch self {
    case .size(let bytes):
      "an Authorization header of \(bytes) bytes: at most \(DigestAuthorization.sizeLimit) are read"
    case .scheme: "an Authorization header of another scheme than Digest: use Digest"
    case .syntax(let offset): "an Authorization header that is not a list of key=value at byte \(offset)"
    case .parameters:
      "an Authorization header of more than \(DigestAuthorization.parameterLimit) parameters; send those of RFC 7616"
    case .repeated(let name): "an Authorization header with \(name) twice; send it once"
    case .missing(let name): "an Authorization header without \(name), which its other fields need"
    case .value("algorithm"): "an Authorization header of an algorithm that was not offered: use SHA-256 or MD5"
    case .value("qop"): "an Authorization header of a qop that was not offered: use auth"
    case .value(let name): "an Authorization header whose \(name) is invalid by RFC 7616 section 3.4"
    case .unsupported(let name): "an Authorization header with \(name), which was not offered; leave it out"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind { .data }
}
