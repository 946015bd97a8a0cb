public import Platform

/// The reason why a client's message is no request. The connection cannot be read any further, because the start of
/// the next message is unknown.
public enum RequestError: Failure, Hashable {
  /// A request line of more bytes than the limit.
  case requestLine(limit: Int)
  /// A header line of more bytes than the limit.
  case headerLine(limit: Int)
  /// More header fields than the limit.
  case headerFields(limit: Int)
  /// A request line and header fields of more bytes together than the limit.
  case head(limit: Int)
  /// A `Content-Length` beyond the limit.
  case body(Int, limit: Int)
  /// Interleaved data beyond the limit.
  case interleaved(Int, limit: Int)
  /// More empty lines between messages than the limit.
  case emptyLines(limit: Int)
  /// A byte that is not allowed in a line, such as a carriage return without a line feed.
  case character(UInt8)
  /// A request line that is not `METHOD URI RTSP/x.y`.
  case malformedRequestLine(String)
  /// A header line without a name and a colon.
  case malformedHeader(String)
  /// A `Content-Length` that is no number, or two that differ.
  case contentLength(String)

  /// The status of the response.
  public var status: ResponseStatus {
    switch self {
    case .requestLine: .uriTooLarge
    case .body: .entityTooLarge
    default: .badRequest
    }
  }

  /// A one-line description for the log.
  public var description: String {
    switch self {
    case .requestLine(let limit): "an RTSP request line of more than \(limit) bytes; shorten the URL"
    case .headerLine(let limit): "an RTSP header line of more than \(limit) bytes; shorten it"
    case .headerFields(let limit): "an RTSP request of more than \(limit) header fields; send fewer"
    case .head(let limit): "an RTSP request whose header has more than \(limit) bytes; send less"
    case .body(let count, let limit): "an RTSP request with a body of \(count) bytes: at most \(limit) are read"
    case .interleaved(let count, let limit):
      "interleaved data of \(count) bytes: at most \(limit) are read; only RTCP is expected there"
    case .emptyLines(let limit): "more than \(limit) empty lines before an RTSP request; send the request"
    case .character(let byte): "byte \(byte) in an RTSP request: lines are text and end with CR LF; is it really RTSP?"
    case .malformedRequestLine(let text):
      "\(excerpt(text)) instead of METHOD URI RTSP/1.0; is it really RTSP?"
    case .malformedHeader(let text): "\(excerpt(text)) instead of an RTSP header field, Name: value"
    case .contentLength(let text): "a Content-Length of \(excerpt(text)): one number of at most 9 digits"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}

/// Returns the first characters of a client's text, in quotes and without terminal control characters.
func excerpt(_ text: some StringProtocol) -> String {
  let limit = 60
  let start = text.unicodeScalars.prefix(limit).map { scalar in
    scalar.isASCII && scalar.value >= 0x20 && scalar.value != 0x7f ? String(scalar) : "?"
  }
  return "'" + start.joined() + (text.unicodeScalars.count > limit ? "…'" : "'")
}
