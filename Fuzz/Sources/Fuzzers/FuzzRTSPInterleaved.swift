import RTSP

/// Interleaved data and requests in the order that the input says: each comes out as it was put in, whatever its payload
/// looks like and however the stream is split.
enum FuzzRTSPInterleaved {
  static func take(_ input: UnsafeRawBufferPointer) {
    guard input.count > 1 else { return }
    let pieceSize = Int(input[0] % 32) + 1
    var rest = input[1...]
    var stream: [UInt8] = []
    var expected: [ClientMessage] = []
    while let first = rest.popFirst() {
      if first & 1 == 0 {
        let count = min(Int(first >> 1), rest.count)
        let payload = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        let header = InterleavedFrame.header(channel: first, payloadBytes: UInt16(count))
        stream += [header.0, header.1, header.2, header.3] + payload
        expected.append(.interleaved(InterleavedFrame(channel: first, payload: payload)))
      } else {
        let count = min(Int(first >> 3), rest.count)
        let body = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        if first & 2 != 0 { stream += Array("\r\n".utf8) }
        let headers: HeaderFields = [.init("CSeq", "\(first)"), .init("Content-Length", "\(count)")]
        stream += Array("PLAY rtsp://h/c RTSP/1.0\r\nCSeq: \(first)\nContent-Length: \(count)\r\n\r\n".utf8) + body
        expected.append(.request(Request(.play, "rtsp://h/c", headers: headers, body: body)))
      }
    }
    var parser = RequestParser()
    var messages: [ClientMessage] = []
    for start in Swift.stride(from: 0, to: stream.count, by: pieceSize) {
      stream[start..<min(start + pieceSize, stream.count)].withUnsafeBytes { memory in
        var piece = memory
        do throws(RequestError) {
          while let message = try parser.next(from: &piece) { messages.append(message) }
        } catch {
          fatalError("good messages were refused: \(error)")
        }
      }
    }
    precondition(messages == expected, "messages came out otherwise than they were put in")
    precondition(!parser.isInsideMessage && parser.bufferedBytes == 0)
  }
}
