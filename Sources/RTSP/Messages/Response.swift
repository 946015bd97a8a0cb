/// A response, RFC 2326 section 7.
public struct Response: Hashable, Sendable {
  /// The status of the request.
  public var status: ResponseStatus
  /// The `CSeq` of the request; `nil` if it has none that can be repeated.
  public var sequenceNumber: String?
  /// The other header fields, without `Content-Length`.
  public var headers: HeaderFields
  /// The body.
  public var body: [UInt8]

  /// Creates a response to a request with that `CSeq`.
  public init(
    _ status: ResponseStatus, sequenceNumber: String?, headers: HeaderFields = [], body: [UInt8] = []
  ) {
    self.status = status
    self.sequenceNumber = sequenceNumber
    self.headers = headers
    self.body = body
  }

  /// Creates a response to `request`.
  public init(_ status: ResponseStatus, to request: Request, headers: HeaderFields = []) {
    self.init(status, sequenceNumber: request.sequenceNumber, headers: headers)
  }

  /// Creates the response to bytes that are no request. The server closes the connection after it.
  public init(to error: RequestError, sequenceNumber: String?) {
    self.init(error.status, sequenceNumber: sequenceNumber, headers: [.init("Connection", "close")])
  }

  /// The response as it is sent. Control characters in header values become spaces, so that text repeated from a
  /// request cannot begin a new line.
  public var bytes: [UInt8] {
    var text = "RTSP/1.0 \(status)\r\n"
    if let sequenceNumber { text += "CSeq: \(sequenceNumber)\r\n" }
    for field in headers.fields { text += "\(field.name): \(Self.printable(field.value))\r\n" }
    if !body.isEmpty { text += "Content-Length: \(body.count)\r\n" }
    return Array((text + "\r\n").utf8) + body
  }

  private static func printable(_ value: String) -> String {
    // By scalar, because CR LF is one character.
    var result = ""
    for scalar in value.unicodeScalars {
      result.unicodeScalars.append(scalar.value < 0x20 || scalar.value == 0x7f ? " " : scalar)
    }
    return result
  }

  /// Turns the response into the one to DESCRIBE, RFC 2326 section 10.2.
  ///
  /// - Parameters:
  ///   - text: A session description whose media have relative control URLs.
  ///   - base: The base of these URLs, from ``SessionTable/Effect/describe(path:contentBase:for:)``.
  public mutating func setDescription(_ text: String, contentBase base: String) {
    headers["Content-Base"] = base
    headers["Content-Type"] = "application/sdp"
    body = Array(text.utf8)
  }

  /// Adds lines for a person; none if `text` is empty.
  public mutating func setText(_ text: String) {
    guard !text.isEmpty else { return }
    headers["Content-Type"] = "text/plain; charset=utf-8"
    body = Array(text.utf8)
  }

  /// Turns the response into the one to SETUP, RFC 2326 section 10.4.
  public mutating func setTransport(_ answer: TransportAnswer) {
    headers["Transport"] = answer.description
  }

  /// Turns the response into the one to PLAY, RFC 2326 section 12.33, with the start of each stream.
  public mutating func setRTPInformation(_ streams: [RTPInformation]) {
    headers["RTP-Info"] = streams.map(\.description).joined(separator: ",")
  }
}

/// The start of one stream in `RTP-Info`, RFC 2326 section 12.33.
public struct RTPInformation: Hashable, Sendable, CustomStringConvertible {
  /// The stream's control URL.
  public var url: String
  /// The first packet's sequence number; `nil` if unknown.
  public var sequenceNumber: UInt16?
  /// The first packet's timestamp; `nil` if unknown.
  public var timestamp: UInt32?

  /// Creates a stream's information; see the properties.
  public init(url: String, sequenceNumber: UInt16? = nil, timestamp: UInt32? = nil) {
    self.url = url
    self.sequenceNumber = sequenceNumber
    self.timestamp = timestamp
  }

  /// The text as written in the header.
  public var description: String {
    var text = "url=\(url)"
    if let sequenceNumber { text += ";seq=\(sequenceNumber)" }
    if let timestamp { text += ";rtptime=\(timestamp)" }
    return text
  }
}
