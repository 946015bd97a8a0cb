package import RTSP

/// A message of a server on an RTSP connection.
package enum ServerMessage: Equatable {
  /// A response to one of our requests.
  case response(ServerResponse)
  /// A request of the server's: its method and its `CSeq`.
  case request(RequestMethod, sequenceNumber: String?)
}

/// A server's response, RFC 2326 section 7.
package struct ServerResponse: Equatable {
  /// The status code, 100…599.
  package var status: Int
  /// The reason in the server's words, printable and short.
  package var reason: String
  /// The header fields.
  package var headers: HeaderFields
  /// The body.
  package var body: [UInt8] = []
}

/// A parser of a server's messages and interleaved data, independent of how the connection splits the bytes. Its limits bound
/// its memory.
package struct ServerMessageParser {
  /// The limits of a message.
  package struct Limits {
    /// The limit of the lines before the body, in bytes.
    var headBytes = 16_384
    /// The limit of header fields.
    var headerFields = 64
    /// The limit of a body in bytes.
    var bodyBytes = 65_536
  }

  private let limits: Limits
  /// The bytes of the incomplete message.
  private var buffer: [UInt8] = []
  /// The bytes of the buffer that are known to have no end of the head.
  private var searched = 0

  package init(limits: Limits = Limits()) { self.limits = limits }

  /// The memory that the parser holds, in bytes.
  var memoryBytes: Int { buffer.capacity }

  /// Takes the next bytes of the connection, and passes messages and interleaved data on, in order.
  ///
  /// - Throws: ``ReceiverError/malformed(_:)``: nothing more can be read.
  package mutating func take(
    _ bytes: UnsafeRawBufferPointer, data: (UInt8, UnsafeRawBufferPointer) throws(ReceiverError) -> Void,
    message: (ServerMessage) throws(ReceiverError) -> Void
  ) throws(ReceiverError) {
    // A part of a message at a time, so that one large read does not fill the buffer.
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = min(rest.count, 65_536)
      buffer.append(contentsOf: rest.prefix(count))
      rest = rest.dropFirst(count)
      var position = 0
      while let end = try next(at: position, data, message) { (position, searched) = (end, 0) }
      if position > 0 { buffer.removeFirst(position) }
    }
  }

  /// Reads what begins at `position` and returns its end; nil where it is incomplete.
  private mutating func next(
    at position: Int, _ data: (UInt8, UnsafeRawBufferPointer) throws(ReceiverError) -> Void,
    _ message: (ServerMessage) throws(ReceiverError) -> Void
  ) throws(ReceiverError) -> Int? {
    guard position < buffer.count else { return nil }
    if buffer[position] == InterleavedFrame.marker {
      let begin = position + InterleavedFrame.headerByteCount
      guard buffer.count >= begin else { return nil }
      let end = begin + (Int(buffer[position + 2]) << 8 | Int(buffer[position + 3]))
      guard buffer.count >= end else { return nil }
      let channel = buffer[position + 1]
      try buffer.span.bytes.withUnsafeBytes { bytes throws(ReceiverError) in
        try data(channel, UnsafeRawBufferPointer(rebasing: bytes[begin..<end]))
      }
      return end
    }
    // Empty lines may stand between messages.
    if buffer[position] == 0x0d || buffer[position] == 0x0a { return position + 1 }
    guard let headEnd = endOfHead(from: position) else {
      guard buffer.count - position <= limits.headBytes else {
        throw .malformed("the server's message has more than \(limits.headBytes) bytes before its body")
      }
      return nil
    }
    guard headEnd - position <= limits.headBytes else {
      throw .malformed("the server's message has more than \(limits.headBytes) bytes before its body")
    }
    var (found, count) = try parse(head: buffer[position..<headEnd])
    guard buffer.count - headEnd >= count else {
      searched = max(0, headEnd - position - 4)
      return nil
    }
    if case .response(var response) = found {
      response.body = Array(buffer[headEnd..<(headEnd + count)])
      found = .response(response)
    }
    try message(found)
    return headEnd + count
  }

  /// Returns the position behind the empty line that ends the head; lines end with CR LF or LF.
  private mutating func endOfHead(from position: Int) -> Int? {
    var index = position + searched
    while index < buffer.count {
      if buffer[index] == 0x0a {
        if index + 1 < buffer.count, buffer[index + 1] == 0x0a { return index + 2 }
        if index + 2 < buffer.count, buffer[index + 1] == 0x0d, buffer[index + 2] == 0x0a { return index + 3 }
      }
      index += 1
    }
    searched = max(0, buffer.count - position - 3)
    return nil
  }

  private func parse(head: ArraySlice<UInt8>) throws(ReceiverError) -> (ServerMessage, bodyBytes: Int) {
    let lines = head.split(separator: 0x0a).map { line in
      String(decoding: line.last == 0x0d ? line.dropLast() : line, as: UTF8.self)
    }
    guard let first = lines.first else { throw .malformed("the server's message is empty") }
    var headers = HeaderFields()
    for line in lines.dropFirst() where !line.isEmpty {
      guard headers.fields.count < limits.headerFields else {
        throw .malformed("the server's message has more than \(limits.headerFields) header fields")
      }
      guard let colon = line.firstIndex(of: ":") else {
        // The rest of a folded line; nothing that is folded is needed.
        if line.first == " " || line.first == "\t" { continue }
        throw .malformed("the server's message has a line that is no header field")
      }
      headers.append(Text.trimmed(line[..<colon]), Text.trimmed(line[line.index(after: colon)...]))
    }
    var bodyBytes = 0
    if let length = headers["Content-Length"] {
      guard let count = Text.decimal(length, digits: 9), count <= limits.bodyBytes else {
        throw .malformed(
          "the server's message has a body of \(Text.printable(String(length.prefix(20)))) bytes; at most \(limits.bodyBytes) are read"
        )
      }
      bodyBytes = count
    }
    let words = first.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    if words[0].hasPrefix("RTSP/") {
      guard words.count >= 2, let status = Text.decimal(words[1], digits: 3), (100...599).contains(status) else {
        throw .malformed("the server's response has no status")
      }
      let reason = words.count > 2 ? Text.printable(words[2]) : ""
      return (.response(ServerResponse(status: status, reason: reason, headers: headers)), bodyBytes)
    }
    guard words.count == 3, words[2].hasPrefix("RTSP/") else {
      throw .malformed("the server does not speak RTSP; is the port right?")
    }
    return (.request(RequestMethod(String(words[0])), sequenceNumber: headers["CSeq"]), bodyBytes)
  }
}

/// Reading of header values and lines.
enum Text {
  /// Returns `text` without spaces and tabs at its ends.
  static func trimmed(_ text: some StringProtocol) -> String {
    var rest = Substring(text)[...]
    while let first = rest.first, first == " " || first == "\t" { rest.removeFirst() }
    while let last = rest.last, last == " " || last == "\t" || last == "\r" { rest.removeLast() }
    return String(rest)
  }

  /// Returns the number in 1…`digits` ASCII digits; nil for any other text.
  static func decimal(_ text: some StringProtocol, digits: Int) -> Int? {
    guard (1...digits).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    return Int(text)
  }

  /// Returns `text` for a message: ASCII, one line, at most 80 characters.
  static func printable(_ text: some StringProtocol) -> String {
    String(decoding: text.utf8.prefix(80).map { (0x20...0x7e).contains($0) ? $0 : 0x3f }, as: UTF8.self)
  }
}
