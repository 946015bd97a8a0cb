import RTSP
import TestSupport
import Testing

@Suite struct RequestParserTests {
  @Test func `the examples of RFC 2326 section 10 are read`() throws {
    let options = try request(
      """
      OPTIONS * RTSP/1.0
      CSeq: 1
      Require: implicit-play
      Proxy-Require: gzipped-messages
      """)
    #expect(options.method == .options)
    #expect(options.uri == "*")
    #expect(options.version == .rtsp1)
    #expect(options.sequenceNumber == "1")
    #expect(options.headers["proxy-require"] == "gzipped-messages")
    let describe = try request(
      """
      DESCRIBE rtsp://server.example.com/fizzle/foo RTSP/1.0
      CSeq: 312
      Accept: application/sdp, application/rtsl, application/mheg
      """)
    #expect(describe.method == .describe)
    #expect(describe.headers["ACCEPT"] == "application/sdp, application/rtsl, application/mheg")
    // Section 10.8, with its body.
    let text = """
      GET_PARAMETER rtsp://example.com/fizzle/foo RTSP/1.0\r
      CSeq: 431\r
      Content-Type: text/parameters\r
      Session: 12345678\r
      Content-Length: 26\r
      \r
      packets_received\r
      jitter\r\n
      """
    let parameters = try #require(try requests(text).first)
    #expect(parameters.method == .getParameter)
    #expect(String(decoding: parameters.body, as: UTF8.self) == "packets_received\r\njitter\r\n")
  }

  /// Section 10.12: interleaved data between a request and the next one.
  @Test func `interleaved data is told from requests`() throws {
    let bytes: [UInt8] =
      Array("PLAY rtsp://foo.com/bar.file RTSP/1.0\r\nCSeq: 3\r\nSession: 12345678\r\n\r\n".utf8)
      + [0x24, 0x00, 0x00, 0x03, 0x24, 0x0d, 0x0a] + [0x24, 0xff, 0x00, 0x00]
      + Array("\r\nOPTIONS * RTSP/1.0\r\ncseq:4\r\n\r\n".utf8)
    let all = try messages(bytes)
    #expect(all.count == 4)
    #expect(all[1] == .interleaved(InterleavedFrame(channel: 0, payload: [0x24, 0x0d, 0x0a])))
    #expect(all[2] == .interleaved(InterleavedFrame(channel: 255, payload: [])))
    guard case .request(let last) = all[3] else { throw RequestError.malformedRequestLine("") }
    #expect(last.sequenceNumber == "4")
    #expect(InterleavedFrame.header(channel: 1, payloadBytes: 1400) == (0x24, 1, 0x05, 0x78))
  }

  @Test(arguments: Conversations.players + ["vlc-satip"])
  func `requests of players are the same however they are split`(name: String) throws {
    let bytes = try Conversations.recording(name)
    let whole = try messages(bytes)
    #expect(whole.count >= 3)
    for cut in 1..<bytes.count {
      var parser = RequestParser()
      #expect(try messages([bytes[..<cut], bytes[cut...]], with: &parser) == whole)
      #expect(!parser.isInsideMessage)
    }
    var parser = RequestParser()
    #expect(try messages(bytes.indices.map { bytes[$0...$0] }, with: &parser) == whole)
  }

  @Test func `GStreamer's RTCP is found among its requests`() throws {
    let frames = try messages(try Conversations.recording("gstreamer-tcp")).compactMap {
      if case .interleaved(let frame) = $0 { frame } else { nil }
    }
    #expect(frames.count == 1)
    #expect(frames.first?.channel == 1)
    // A receiver report of one block.
    #expect(frames.first?.payload.prefix(2) == [0x81, 0xc9])
  }

  @Test(arguments: ["7", "007", "18446744073709551615", "99999999999999999999", "00000000000000000000"])
  func `a CSeq is repeated digit for digit`(number: String) throws {
    let request = try request("OPTIONS * RTSP/1.0\nCSeq: \(number)")
    #expect(request.sequenceNumber == number)
    let answer = String(decoding: Response(.ok, to: request).bytes, as: UTF8.self)
    #expect(answer == "RTSP/1.0 200 OK\r\nCSeq: \(number)\r\n\r\n")
  }

  @Test(arguments: ["", "x", "-1", "+1", "1 2", "0x1", "100000000000000000000", "１"])
  func `an invalid CSeq is refused`(text: String) throws {
    #expect(try request("OPTIONS * RTSP/1.0\nCSeq: \(text)").sequenceNumber == nil)
    #expect(try request("OPTIONS * RTSP/1.0\nCSeq: 1\nCSeq: \(text)").sequenceNumber == nil)
  }

  @Test func `line feeds alone, empty lines, folded lines and spaces are taken`() throws {
    let all = try requests(
      "\r\n\nSETUP rtsp://h/c RTSP/1.0\nCSeq:1\r\nTransport: \t RTP/AVP;unicast;\r\n\tclient_port=2-3 \n\n")
    #expect(all.first?.headers["transport"] == "RTP/AVP;unicast; client_port=2-3")
  }

  @Test(arguments: [
    ("A:\n b", "b"), ("A:\n \n b\n\t", "b"), ("A: b\n  c \n\td", "b c d"), ("A:\t \u{301}", "\u{301}"),
    ("A: \u{a0}", "\u{a0}"),
  ])
  func `white space around a value is not part of it`(lines: String, value: String) throws {
    #expect(try request("OPTIONS * RTSP/1.0\n" + lines).headers["a"] == value)
  }

  static let faults: [(String, RequestError)] = [
    ("GET / HTTP/1.1\r\n", .malformedRequestLine("GET / HTTP/1.1")),
    ("OPTIONS *\r\n", .malformedRequestLine("OPTIONS *")),
    ("OPTIONS  * RTSP/1.0\r\n", .malformedRequestLine("OPTIONS  * RTSP/1.0")),
    (" OPTIONS * RTSP/1.0\r\n", .malformedRequestLine(" OPTIONS * RTSP/1.0")),
    ("OPTIONS * RTSP/1.0 \r\n", .malformedRequestLine("OPTIONS * RTSP/1.0 ")),
    ("OPTIONS * RTSP/1\r\n", .malformedRequestLine("OPTIONS * RTSP/1")),
    ("OPTIONS * RTSP/1.-0\r\n", .malformedRequestLine("OPTIONS * RTSP/1.-0")),
    ("OPTIONS * RTSP/256.0\r\n", .malformedRequestLine("OPTIONS * RTSP/256.0")),
    ("OPT(IONS * RTSP/1.0\r\n", .malformedRequestLine("OPT(IONS * RTSP/1.0")),
    ("RTSP/1.0 200 OK\r\n", .malformedRequestLine("RTSP/1.0 200 OK")),
    (
      String(repeating: "A", count: 33) + " * RTSP/1.0\n",
      .malformedRequestLine(String(repeating: "A", count: 33) + " * RTSP/1.0")
    ),
    ("\u{16}\u{3}\u{1}", .character(0x16)),
    ("OPTIONS * RTSP/1.0\rCSeq", .character(0x0d)),
    ("OPTIONS *\0RTSP/1.0\r\n", .character(0)),
    ("OPTIONS rtsp://h/é RTSP/1.0\r\n", .character(0xc3)),
    ("OPTIONS * RTSP/1.0\r\nCSeq: 1\u{7f}\r\n", .character(0x7f)),
    ("OPTIONS * RTSP/1.0\r\nCSeq\r\n", .malformedHeader("CSeq")),
    ("OPTIONS * RTSP/1.0\r\n: 1\r\n", .malformedHeader(": 1")),
    ("OPTIONS * RTSP/1.0\r\nCSeq : 1\r\n", .malformedHeader("CSeq : 1")),
    ("OPTIONS * RTSP/1.0\r\n folded\r\n", .malformedHeader(" folded")),
    ("OPTIONS * RTSP/1.0\r\nContent-Length: -1\r\n\r\n", .contentLength("-1")),
    ("OPTIONS * RTSP/1.0\r\nContent-Length:\r\n\r\n", .contentLength("")),
    ("OPTIONS * RTSP/1.0\r\nContent-Length: 1\r\nCONTENT-LENGTH: 2\r\n\r\n", .contentLength("1, 2")),
    ("OPTIONS * RTSP/1.0\r\nContent-Length: 9999999999\r\n\r\n", .contentLength("9999999999")),
    ("OPTIONS * RTSP/1.0\r\nContent-Length: 4097\r\n\r\n", .body(4097, limit: 4096)),
    ("$\u{0}\u{10}\u{1}", .interleaved(4097, limit: 4096)),
    (String(repeating: "\r\n", count: 9), .emptyLines(limit: 8)),
  ]

  @Test(arguments: faults)
  func `garbage is refused, wherever it is split, and from then on`(text: String, error: RequestError) {
    let bytes = Array(text.utf8)
    #expect(throws: error) { try messages(bytes) }
    for cut in 1..<bytes.count {
      var parser = RequestParser()
      #expect(throws: error) { try messages([bytes[..<cut], bytes[cut...]], with: &parser) }
      #expect(throws: error) { try messages([Array("OPTIONS * RTSP/1.0\r\n\r\n".utf8)[...]], with: &parser) }
      #expect(parser.bufferedBytes < bytes.count)
    }
    #expect(!error.description.isEmpty && error.description.count < 200)
    #expect(!error.description.unicodeScalars.contains { $0.value < 0x20 })
  }

  @Test func `a request that fails later can still be answered with its CSeq`() {
    var parser = RequestParser()
    let bytes = Array("OPTIONS * RTSP/1.0\r\nCSeq: 12\r\nContent-Length: 5000\r\n\r\n".utf8)
    #expect(throws: RequestError.body(5000, limit: 4096)) { try messages([bytes[...]], with: &parser) }
    let answer = Response(to: .body(5000, limit: 4096), sequenceNumber: parser.sequenceNumber)
    #expect(
      String(decoding: answer.bytes, as: UTF8.self)
        == "RTSP/1.0 413 Request Entity Too Large\r\nCSeq: 12\r\nConnection: close\r\n\r\n")
  }

  /// Each limit: what just fits, and one more.
  @Test func `a limit is reached, not passed`() throws {
    var limits = RequestParser.Limits(
      requestLineBytes: 20, headerLineBytes: 20, headerFields: 2, headBytes: 1000, bodyBytes: 3, interleavedBytes: 3,
      emptyLines: 1)
    func check(_ fits: String, _ exceeds: String, _ error: RequestError) throws {
      #expect(try messages(Array(fits.utf8), limits: limits).count == 1)
      for end in [exceeds, exceeds.replacing("\r\n", with: "\n")] {
        let bytes = Array(end.utf8)
        for cut in 1..<bytes.count {
          var parser = RequestParser(limits: limits)
          #expect(throws: error) { try messages([bytes[..<cut], bytes[cut...]], with: &parser) }
        }
      }
    }
    try check("OPTIONS /a RTSP/1.0\r\n\r\n", "OPTIONS /abc RTSP/1.0\r\n\r\n", .requestLine(limit: 20))
    try check(
      "OPTIONS * RTSP/1.0\r\nA: \(String(repeating: "x", count: 17))\r\n\r\n",
      "OPTIONS * RTSP/1.0\r\nA: \(String(repeating: "x", count: 18))\r\n\r\n", .headerLine(limit: 20))
    try check(
      "OPTIONS * RTSP/1.0\r\nA: 1\r\nB: 2\r\n\r\n",
      "OPTIONS * RTSP/1.0\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", .headerFields(limit: 2))
    try check("\r\nOPTIONS * RTSP/1.0\r\n\r\n", "\r\n\r\nOPTIONS * RTSP/1.0\r\n\r\n", .emptyLines(limit: 1))
    try check("$\u{1}\u{0}\u{3}abc", "$\u{1}\u{0}\u{4}abcd", .interleaved(4, limit: 3))
    limits.headBytes = 26
    try check(
      "OPTIONS * RTSP/1.0\r\nA: 4\r\nB:34\r\n\r\n", "OPTIONS * RTSP/1.0\r\nA: 4\r\nB:345\r\n\r\n",
      .head(limit: 26))
    try check(
      "OPTIONS * RTSP/1.0\r\nA: 4\r\n b\r\n c\r\n\r\n",
      "OPTIONS * RTSP/1.0\r\nA: 4\r\n b\r\n c\r\n d\r\n\r\n", .head(limit: 26))
  }

  @Test func `the memory for an endless message is limited`() {
    let limits = RequestParser.Limits(headBytes: 3000, bodyBytes: 500)
    var random = SeededGenerator(seed: 4)
    for _ in 0..<300 {
      var parser = RequestParser(limits: limits)
      var largest = 0
      for _ in 0..<400 {
        let piece: [UInt8] =
          switch Int.random(in: 0..<6, using: &random) {
          case 0: Array("OPTIONS * RTSP/1.0\r\n".utf8)
          case 1: Array("Content-Length: 400\r\n".utf8)
          case 2: Array(" folded\r\n".utf8)
          case 3: Array(repeating: 0x41, count: 300)
          case 4: Array("\r\n".utf8)
          default: Array("Header: value\r\n".utf8)
          }
        guard (try? messages([piece[...]], with: &parser)) != nil else { break }
        largest = max(largest, parser.bufferedBytes)
      }
      #expect(largest <= 3000 + 500 + 1)
    }
  }

  @Test func `random bytes do no harm`() {
    var random = SeededGenerator(seed: 5)
    var failures = 0
    for _ in 0..<5000 {
      let bytes = random.bytes(Int.random(in: 1...200, using: &random))
      if (try? messages(bytes)) == nil { failures += 1 }
    }
    #expect(failures > 4000)
  }

  @Test func `text repeated from a request cannot start a new header`() {
    let response = Response(
      ResponseStatus(rawValue: 599), sequenceNumber: nil,
      headers: [
        .init("Unsupported", "a\r\nb\nc\rd\0e\u{7f}"), .init("WWW-Authenticate", "A"), .init("WWW-Authenticate", "B"),
      ],
      body: [1])
    #expect(
      String(decoding: response.bytes, as: UTF8.self) == """
        RTSP/1.0 599 Server Error\r
        Unsupported: a  b c d e \r
        WWW-Authenticate: A\r
        WWW-Authenticate: B\r
        Content-Length: 1\r
        \r
        \u{1}
        """)
  }
}
