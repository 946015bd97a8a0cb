/// A status code, RFC 2326 section 7.1.1.
public struct ResponseStatus: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The code, three digits.
  public let rawValue: Int

  /// Creates the status of a code.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// The code and its reason phrase, as in a status line.
  public var description: String { "\(rawValue) \(reasonPhrase)" }

  /// `true` if the request succeeded: 2xx.
  public var isSuccess: Bool { (200..<300).contains(rawValue) }

  /// The RFC's reason phrase for the code, or the name of its class if the RFC has none.
  public var reasonPhrase: String {
    if let phrase = Self.reasonPhrases[rawValue] { return phrase }
    return switch rawValue / 100 {
    case 1: "Informational"
    case 2: "Success"
    case 3: "Redirection"
    case 4: "Client Error"
    default: "Server Error"
    }
  }

  /// 200: success.
  public static let ok = ResponseStatus(rawValue: 200)
  /// 400: a request that cannot be understood.
  public static let badRequest = ResponseStatus(rawValue: 400)
  /// 401: missing authentication. The server itself sends it, before a ``SessionTable`` sees the request.
  public static let unauthorized = ResponseStatus(rawValue: 401)
  /// 403: this client has no permission.
  public static let forbidden = ResponseStatus(rawValue: 403)
  /// 404: no such path or track.
  public static let notFound = ResponseStatus(rawValue: 404)
  /// 405: a method of the RFC that this server has for no URL.
  public static let methodNotAllowed = ResponseStatus(rawValue: 405)
  /// 406: no format that `Accept` allows.
  public static let notAcceptable = ResponseStatus(rawValue: 406)
  /// 408: an incomplete request, with no further bytes for too long.
  public static let requestTimeout = ResponseStatus(rawValue: 408)
  /// 413: a body beyond the limit.
  public static let entityTooLarge = ResponseStatus(rawValue: 413)
  /// 414: a request line beyond the limit.
  public static let uriTooLarge = ResponseStatus(rawValue: 414)
  /// 451: a parameter that the server does not have.
  public static let parameterNotUnderstood = ResponseStatus(rawValue: 451)
  /// 454: the session is missing, unknown, or has timed out.
  public static let sessionNotFound = ResponseStatus(rawValue: 454)
  /// 455: a method that is not valid in this state.
  public static let methodNotValidInThisState = ResponseStatus(rawValue: 455)
  /// 457: a range that cannot be played.
  public static let invalidRange = ResponseStatus(rawValue: 457)
  /// 459: a method that is not allowed on a whole presentation.
  public static let aggregateNotAllowed = ResponseStatus(rawValue: 459)
  /// 460: a method that is allowed on a whole presentation only.
  public static let onlyAggregateAllowed = ResponseStatus(rawValue: 460)
  /// 461: none of the offered transports.
  public static let unsupportedTransport = ResponseStatus(rawValue: 461)
  /// 500: a defect.
  public static let internalServerError = ResponseStatus(rawValue: 500)
  /// 501: an unknown method or unit.
  public static let notImplemented = ResponseStatus(rawValue: 501)
  /// 503: too many sessions.
  public static let serviceUnavailable = ResponseStatus(rawValue: 503)
  /// 505: a version other than RTSP/1.0.
  public static let versionNotSupported = ResponseStatus(rawValue: 505)
  /// 551: an option that the server does not have.
  public static let optionNotSupported = ResponseStatus(rawValue: 551)

  private static let reasonPhrases: [Int: String] = [
    100: "Continue",
    200: "OK", 201: "Created", 250: "Low on Storage Space",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Moved Temporarily", 303: "See Other",
    304: "Not Modified", 305: "Use Proxy",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Time-out",
    410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Request Entity Too Large",
    414: "Request-URI Too Large", 415: "Unsupported Media Type",
    451: "Parameter Not Understood", 452: "Conference Not Found", 453: "Not Enough Bandwidth",
    454: "Session Not Found", 455: "Method Not Valid in This State", 456: "Header Field Not Valid for Resource",
    457: "Invalid Range", 458: "Parameter Is Read-Only", 459: "Aggregate operation not allowed",
    460: "Only aggregate operation allowed", 461: "Unsupported transport", 462: "Destination unreachable",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Time-out", 505: "RTSP Version not supported", 551: "Option not supported",
  ]
}
