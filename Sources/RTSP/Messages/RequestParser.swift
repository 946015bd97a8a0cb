/// A parser of a client's requests and interleaved data, independent of how the connection splits the bytes.
///
/// The parser holds only the incomplete message, so that its ``Limits`` bound its memory. Lines may end with a line
/// feed alone, and header lines may be folded (RFC 2326 section 4, RFC 2068 section 4.2).
public struct RequestParser: Sendable {
  /// The limits of a parser.
  public struct Limits: Hashable, Sendable {
    /// The maximum number of bytes of a request line.
    public var requestLineBytes: Int
    /// The maximum number of bytes of a header line.
    public var headerLineBytes: Int
    /// The maximum number of header fields.
    public var headerFields: Int
    /// The maximum number of bytes of request line and header lines together, without line ends.
    public var headBytes: Int
    /// The maximum number of bytes of a body.
    public var bodyBytes: Int
    /// The maximum number of bytes of one interleaved packet.
    public var interleavedBytes: Int
    /// The maximum number of empty lines before a message.
    public var emptyLines: Int

    /// Creates limits that every player stays far below.
    public init(
      requestLineBytes: Int = 2048, headerLineBytes: Int = 4096, headerFields: Int = 64, headBytes: Int = 16_384,
      bodyBytes: Int = 4096, interleavedBytes: Int = 4096, emptyLines: Int = 8
    ) {
      self.requestLineBytes = requestLineBytes
      self.headerLineBytes = headerLineBytes
      self.headerFields = headerFields
      self.headBytes = headBytes
      self.bodyBytes = bodyBytes
      self.interleavedBytes = interleavedBytes
      self.emptyLines = emptyLines
    }
  }

  /// The position of the next byte in a message.
  private enum Place: Hashable {
    case start
    case requestLine
    case headers
    case body(Int)
    case interleavedHeader
    case interleaved(channel: UInt8, count: Int)
  }

  /// The parser's limits.
  public let limits: Limits
  private var place = Place.start
  private var buffer: [UInt8] = []
  private var request = Request(.options, "*")
  private var headBytes = 0
  private var emptyLines = 0
  private var failure: RequestError?

  /// Creates a parser at the start of a connection.
  public init(limits: Limits = Limits()) {
    self.limits = limits
  }

  /// `true` if a message has begun and is incomplete, so that a timeout runs.
  public var isInsideMessage: Bool { place != .start }

  /// The `CSeq` of the request being read, for the response to a failed request; `nil` if unknown.
  public var sequenceNumber: String? {
    switch place {
    case .headers, .body: request.headers.sequenceNumber
    default: nil
    }
  }

  /// The number of bytes held of an incomplete message.
  public var bufferedBytes: Int {
    switch place {
    case .headers, .body: headBytes + buffer.count
    default: buffer.count
    }
  }

  /// Returns the next message; `nil` if all `bytes` are read and the message is incomplete.
  ///
  /// - Parameter bytes: The received bytes. The parser removes those that it has read from the start.
  /// - Throws: ``RequestError`` if the connection cannot be read, and again at every later call.
  public mutating func next(from bytes: inout UnsafeRawBufferPointer) throws(RequestError) -> ClientMessage? {
    if let failure { throw failure }
    do throws(RequestError) {
      return try read(&bytes)
    } catch {
      failure = error
      buffer = []
      throw error
    }
  }

  private mutating func read(_ bytes: inout UnsafeRawBufferPointer) throws(RequestError) -> ClientMessage? {
    while let byte = bytes.first {
      switch place {
      case .start:
        place = byte == InterleavedFrame.marker ? .interleavedHeader : .requestLine
      case .requestLine, .headers:
        bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        if try takeLineByte(byte), let message = try endLine() { return message }
      case .interleavedHeader:
        bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        buffer.append(byte)
        if buffer.count == InterleavedFrame.headerByteCount, let message = try endInterleavedHeader() {
          return message
        }
      case .body(let count):
        if let body = takeBlock(count, from: &bytes) {
          request.body = body
          return endRequest()
        }
      case .interleaved(let channel, let count):
        if let payload = takeBlock(count, from: &bytes) {
          place = .start
          emptyLines = 0
          return .interleaved(InterleavedFrame(channel: channel, payload: payload))
        }
      }
    }
    return nil
  }

  /// Appends `byte` to the line. Returns `true` if the byte ends the line. The parser takes one byte at a time, so
  /// that it reports the same first error wherever the input is split.
  private mutating func takeLineByte(_ byte: UInt8) throws(RequestError) -> Bool {
    let isRequestLine = place == .requestLine
    if byte == 0x0a {
      if buffer.last == 0x0d { buffer.removeLast() }
      return true
    }
    if buffer.last == 0x0d { throw .character(0x0d) }
    let isText = (0x20...0x7e).contains(byte) || byte == 0x0d || (!isRequestLine && (byte >= 0x80 || byte == 0x09))
    guard isText else { throw .character(byte) }
    if byte != 0x0d {
      let lineLimit = isRequestLine ? limits.requestLineBytes : limits.headerLineBytes
      if buffer.count >= lineLimit {
        throw isRequestLine ? .requestLine(limit: lineLimit) : .headerLine(limit: lineLimit)
      }
      if headBytes + buffer.count >= limits.headBytes { throw .head(limit: limits.headBytes) }
    }
    buffer.append(byte)
    return false
  }

  /// Adds bytes to the buffer up to `count` in all. Returns the buffer's contents when it is complete.
  private mutating func takeBlock(_ count: Int, from bytes: inout UnsafeRawBufferPointer) -> [UInt8]? {
    let part = min(count - buffer.count, bytes.count)
    buffer.append(contentsOf: bytes.prefix(part))
    bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(part))
    guard buffer.count == count else { return nil }
    defer { buffer = [] }
    return buffer
  }

  private mutating func endInterleavedHeader() throws(RequestError) -> ClientMessage? {
    let (channel, count) = (buffer[1], Int(buffer[2]) << 8 | Int(buffer[3]))
    guard count <= limits.interleavedBytes else {
      throw .interleaved(count, limit: limits.interleavedBytes)
    }
    buffer.removeAll(keepingCapacity: true)
    if count > 0 {
      place = .interleaved(channel: channel, count: count)
      return nil
    }
    place = .start
    emptyLines = 0
    return .interleaved(InterleavedFrame(channel: channel, payload: []))
  }

  private mutating func endLine() throws(RequestError) -> ClientMessage? {
    let line = buffer
    buffer.removeAll(keepingCapacity: true)
    headBytes += line.count
    if place == .requestLine {
      guard !line.isEmpty else {
        emptyLines += 1
        place = .start
        if emptyLines > limits.emptyLines { throw .emptyLines(limit: limits.emptyLines) }
        return nil
      }
      request = try Self.requestLine(line)
      place = .headers
      return nil
    }
    if line.isEmpty { return try endHead() }
    try addHeader(line)
    return nil
  }

  private static func requestLine(_ line: [UInt8]) throws(RequestError) -> Request {
    let text = String(decoding: line, as: UTF8.self)
    let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
    guard parts.count == 3, (1...32).contains(parts[0].count), parts[0].allSatisfy(\.isToken), !parts[1].isEmpty,
      let version = version(parts[2])
    else { throw .malformedRequestLine(text) }
    return Request(
      RequestMethod(String(decoding: parts[0], as: UTF8.self)), String(decoding: parts[1], as: UTF8.self),
      version: version)
  }

  private static func version(_ text: ArraySlice<UInt8>) -> ProtocolVersion? {
    guard text.starts(with: "RTSP/".utf8) else { return nil }
    let numbers = text.dropFirst(5).split(separator: 0x2e, omittingEmptySubsequences: false)
    guard numbers.count == 2, let major = String(decoding: numbers[0], as: UTF8.self).decimal(UInt8.self, digits: 2),
      let minor = String(decoding: numbers[1], as: UTF8.self).decimal(UInt8.self, digits: 2)
    else { return nil }
    return ProtocolVersion(major: major, minor: minor)
  }

  private mutating func addHeader(_ line: [UInt8]) throws(RequestError) {
    let text = String(decoding: line, as: UTF8.self)
    if line[0] == 0x20 || line[0] == 0x09 {
      guard !request.headers.fields.isEmpty else { throw .malformedHeader(text) }
      request.headers.continueLast(with: text.trimmed)
      return
    }
    guard request.headers.fields.count < limits.headerFields else {
      throw .headerFields(limit: limits.headerFields)
    }
    guard let colon = line.firstIndex(of: 0x3a), colon > 0, line[..<colon].allSatisfy(\.isToken) else {
      throw .malformedHeader(text)
    }
    request.headers.append(
      String(decoding: line[..<colon], as: UTF8.self), String(decoding: line[(colon + 1)...], as: UTF8.self).trimmed)
  }

  private mutating func endHead() throws(RequestError) -> ClientMessage? {
    let lengths = request.headers.values(of: "Content-Length")
    var count = 0
    if let text = lengths.first {
      guard lengths.allSatisfy({ $0 == text }), let number: Int = text.decimal(digits: 9) else {
        throw .contentLength(lengths.joined(separator: ", "))
      }
      count = number
    }
    guard count <= limits.bodyBytes else { throw .body(count, limit: limits.bodyBytes) }
    if count == 0 { return endRequest() }
    place = .body(count)
    return nil
  }

  private mutating func endRequest() -> ClientMessage {
    defer {
      request = Request(.options, "*")
      headBytes = 0
      emptyLines = 0
      place = .start
    }
    return .request(request)
  }
}
