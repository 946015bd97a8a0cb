import RTSP

/// Any bytes as what a client sends: whole, byte by byte, and split as the input's first bytes say, with the same result
/// and bounded memory. What was read can be written and is read again.
enum FuzzRTSPRequest {
  static let limits = RequestParser.Limits(
    requestLineBytes: 100, headerLineBytes: 100, headerFields: 8, headBytes: 400, bodyBytes: 64, interleavedBytes: 64,
    emptyLines: 2)

  struct Outcome: Equatable {
    var messages: [ClientMessage] = []
    var error: RequestError?
    var sequenceNumber: String?
    var isInsideMessage = false
  }

  static func take(_ input: UnsafeRawBufferPointer) {
    guard input.count > 4 else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: input[4...])
    let whole = read(bytes, pieces: [bytes.count])
    precondition(whole == read(bytes, pieces: [1]), "another result byte by byte")
    let pieces = input[..<4].map { Int($0) + 1 }
    precondition(whole == read(bytes, pieces: pieces), "another result in other pieces")
    if let error = whole.error {
      precondition(!error.description.isEmpty && error.description.utf8.allSatisfy { $0 >= 0x20 })
      precondition(!error.status.isSuccess)
    }
    for message in whole.messages { rewrite(message) }
  }

  /// Reads the bytes in pieces of these sizes, in turn.
  static func read(_ bytes: UnsafeRawBufferPointer, pieces: [Int]) -> Outcome {
    var parser = RequestParser(limits: limits)
    var outcome = Outcome()
    var rest = bytes
    var turn = 0
    do throws(RequestError) {
      while !rest.isEmpty {
        let count = min(pieces[turn % pieces.count], rest.count)
        turn += 1
        // A copy of its own, so that a read beyond the piece is seen.
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: rest.prefix(count))
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        var piece = UnsafeRawBufferPointer(copy)
        while let message = try parser.next(from: &piece) { outcome.messages.append(message) }
        precondition(piece.isEmpty, "bytes left without a message")
        precondition(parser.bufferedBytes <= limits.headBytes + limits.bodyBytes + 1, "memory beyond the limits")
      }
    } catch {
      outcome.error = error
    }
    outcome.sequenceNumber = parser.sequenceNumber
    outcome.isInsideMessage = parser.isInsideMessage
    return outcome
  }

  static func rewrite(_ message: ClientMessage) {
    guard case .request(let request) = message else { return }
    precondition(request.headers.fields.count <= limits.headerFields && request.body.count <= limits.bodyBytes)
    var text = "\(request.method) \(request.uri) \(request.version)\r\n"
    for field in request.headers.fields { text += "\(field.name): \(field.value)\r\n" }
    let bytes = Array((text + "\r\n").utf8) + request.body
    bytes.withUnsafeBytes { memory in
      var rest = memory
      // Bytes that are no UTF-8 were repaired, and are more now.
      var parser = RequestParser()
      guard let again = try? parser.next(from: &rest), again == message, rest.isEmpty else {
        fatalError("a request that is read otherwise than it was written")
      }
    }
    let response = Response(.ok, to: request, headers: [.init("Unsupported", request.headers["Require"] ?? "")])
    let lines = response.bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
    precondition(lines.count == (request.sequenceNumber == nil ? 4 : 5), "an answer with other lines than its own")
  }
}
