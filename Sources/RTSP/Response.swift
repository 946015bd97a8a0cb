/// An answer, RFC 2326 section 7.
public struct Response: Hashable, Sendable {
  /// What became of the request.
  public var status: ResponseStatus
  /// `CSeq` of the request; nil where it had none that can be repeated.
  public var sequenceNumber: String?
  /// Further header fields, but for `Content-Length`.
  public var headers: HeaderFields
  /// What follows the header.
  public var body: [UInt8]

  /// An answer to a request with that `CSeq`.
  public init(
    _ status: ResponseStatus, sequenceNumber: String?, headers: HeaderFields = [], body: [UInt8] = []
  ) {
    self.status = status
    self.sequenceNumber = sequenceNumber
    self.headers = headers
    self.body = body
  }

  /// An answer to `request`.
  public init(_ status: ResponseStatus, to request: Request, headers: HeaderFields = []) {
    self.init(status, sequenceNumber: request.sequenceNumber, headers: headers)
  }

  /// The answer to what is no request; the server closes the connection after it.
  public init(to error: RequestError, sequenceNumber: String?) {
    self.init(error.status, sequenceNumber: sequenceNumber, headers: [.init("Connection", "close")])
  }

  /// The answer as it is sent. Whatever control characters a header value has become spaces: nothing that is repeated
  /// from a request can begin a line of its own.
  public var bytes: [UInt8] {
    var text = "RTSP/1.0 \(status)\r\n"
    if let sequenceNumber { text += "CSeq: \(sequenceNumber)\r\n" }
    for field in headers.fields { text += "\(field.name): \(Self.printable(field.value))\r\n" }
    if !body.isEmpty { text += "Content-Length: \(body.count)\r\n" }
    return Array((text + "\r\n").utf8) + body
  }

  private static func printable(_ value: String) -> String {
    // By scalar: CR LF is one character.
    var result = ""
    for scalar in value.unicodeScalars {
      result.unicodeScalars.append(scalar.value < 0x20 || scalar.value == 0x7f ? " " : scalar)
    }
    return result
  }

  /// Makes it the answer to DESCRIBE, RFC 2326 section 10.2.
  ///
  /// - Parameters:
  ///   - text: A session description whose media have relative control URLs.
  ///   - base: What these are relative to; ``SessionTable/Effect/describe(path:contentBase:for:)`` gives it.
  public mutating func setDescription(_ text: String, contentBase base: String) {
    headers["Content-Base"] = base
    headers["Content-Type"] = "application/sdp"
    body = Array(text.utf8)
  }

  /// Adds lines for a person; none where `text` is empty.
  mutating func setText(_ text: String) {
    guard !text.isEmpty else { return }
    headers["Content-Type"] = "text/plain; charset=utf-8"
    body = Array(text.utf8)
  }

  /// Makes it the answer to SETUP, RFC 2326 section 10.4.
  public mutating func setTransport(_ answer: TransportAnswer) {
    headers["Transport"] = answer.description
  }

  /// Makes it the answer to PLAY, RFC 2326 section 12.33: where each stream begins.
  public mutating func setRTPInformation(_ streams: [RTPInformation]) {
    headers["RTP-Info"] = streams.map(\.description).joined(separator: ",")
  }
}

/// Where a stream begins that is about to play: one stream of `RTP-Info`, RFC 2326 section 12.33.
public struct RTPInformation: Hashable, Sendable, CustomStringConvertible {
  /// The stream's control URL.
  public var url: String
  /// The first packet's sequence number; nil where it is not known.
  public var sequenceNumber: UInt16?
  /// The first packet's timestamp; nil where it is not known.
  public var timestamp: UInt32?

  /// A stream; see the properties.
  public init(url: String, sequenceNumber: UInt16? = nil, timestamp: UInt32? = nil) {
    self.url = url
    self.sequenceNumber = sequenceNumber
    self.timestamp = timestamp
  }

  /// As in the header.
  public var description: String {
    var text = "url=\(url)"
    if let sequenceNumber { text += ";seq=\(sequenceNumber)" }
    if let timestamp { text += ";rtptime=\(timestamp)" }
    return text
  }
}
