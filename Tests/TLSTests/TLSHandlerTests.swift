import Foundation
import NIOCore
import Serving
import TLS
import TestSupport
import Testing

/// The handler by clients that others wrote: openssl's program, GnuTLS, Python, Chromium.
@Suite struct TLSHandlerTests {
  /// Waits in the shell until `pattern` stands in so many lines of what the client has written.
  private static let shell = """
    await() { i=0; until [ "$(grep -c -- "$1" out)" -ge ${2:-1} ] || [ $((i += 1)) -gt 300 ]; do sleep 0.1; done; }
    touch out;
    """

  /// Returns the result of a client of TLS whose input is `input`, the shell's.
  private func client(_ command: String, input: String) throws -> Subprocess.Result {
    let directory = try TemporaryDirectory()
    return try Subprocess.run(
      [
        "sh", "-c",
        "cd \(directory.url.path); \(Self.shell) (\(input)) | \(command) > out 2>&1; status=$?; cat out; exit $status",
      ], in: directory, limit: 60)
  }

  private func openssl(
    _ server: SecureServer, _ options: String, input: String = "echo hello; await '^hello$'"
  ) throws -> Subprocess.Result {
    try client("openssl s_client -connect 127.0.0.1:\(server.port) \(options)", input: input)
  }

  @Test(arguments: [
    ("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3"), ("-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.2"),
    ("-tls1_3 -curves P-384", "TLSv1.3"),
  ])
  func `openssl is answered by TLS 1_2 and 1_3`(options: String, version: String) throws {
    let server = try SecureServer(.echo)
    let result = try openssl(server, options)
    #expect(result.outputText.contains("New, \(version), Cipher is "), "\(result.outputText)")
    #expect(result.outputText.contains("\nhello\n"), "\(result.outputText)")
    #expect(!result.outputText.contains("New Session Ticket arrived"), "\(result.outputText)")
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors.isEmpty, "\(server.report.now.errors)")
  }

  @Test(arguments: [
    "-tls1 -cipher ALL:@SECLEVEL=0", "-tls1_1 -cipher ALL:@SECLEVEL=0",
    // No authenticated encryption.
    "-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA",
  ])
  func `an older TLS version is refused, and the next client is served`(options: String) throws {
    let server = try SecureServer(.echo)
    let result = try openssl(server, options, input: "await alert")
    #expect(result.outputText.contains("alert") && result.status != 0, "\(result.outputText)")
    #expect(eventually { server.report.now.closures == 1 })
    guard case .handshake? = server.report.now.errors.first else { throw CocoaError(.featureUnsupported) }
    #expect(try openssl(server, "-tls1_3").outputText.contains("\nhello\n"))
  }

  @Test(arguments: ["AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA"])
  func `without forward secrecy or authenticated encryption a client is refused, though the key could do it`(
    cipher: String
  ) throws {
    let directory = try TemporaryDirectory()
    let server = try SecureServer(.echo, context: SecureServer.rsaContext(in: directory))
    let result = try openssl(server, "-tls1_2 -cipher \(cipher)", input: "await alert")
    #expect(result.outputText.contains("alert handshake failure") && result.status != 0, "\(result.outputText)")
    #expect(eventually { server.report.now.closures == 1 })
    guard case .handshake? = server.report.now.errors.first else { throw CocoaError(.featureUnsupported) }
    let served = try openssl(server, "-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256").outputText
    #expect(served.contains("Cipher is ECDHE-RSA-AES128-GCM-SHA256") && served.contains("\nhello\n"), "\(served)")
  }

  @Test func `renegotiation is refused`() throws {
    let server = try SecureServer(.echo)
    let result = try openssl(
      server, "-tls1_2", input: "echo R; await 'no renegotiation'")
    #expect(result.outputText.contains("RENEGOTIATING"), "\(result.outputText)")
    #expect(result.outputText.contains("no renegotiation"), "\(result.outputText)")
    #expect(server.report.now.bytes == 0)
  }

  @Test func `new keys are agreed on while it goes on`() throws {
    let server = try SecureServer(.echo)
    let keys = "echo K; await KEYUPDATE 1; echo k; await KEYUPDATE 2; echo K; await KEYUPDATE 3; "
    let result = try openssl(server, "-tls1_3", input: keys + "echo hello; await '^hello$'")
    #expect(result.outputText.components(separatedBy: "KEYUPDATE").count == 4, "\(result.outputText)")
    #expect(result.outputText.contains("\nhello\n"), "\(result.outputText)")
    #expect(server.report.now.errors.isEmpty, "\(server.report.now.errors)")
  }

  @Test(arguments: [
    ("-alpn h2,http/1.1", "ALPN protocol: http/1.1"), ("-alpn spdy/3", "No ALPN negotiated"),
    ("-servername x", "No ALPN negotiated"),
  ])
  func `ALPN has what both speak, and nobody is refused for it`(options: String, line: String) throws {
    let server = try SecureServer(.echo, protocols: ["http/1.1", "http/1.0"])
    let result = try openssl(server, options)
    #expect(result.outputText.contains(line) && result.outputText.contains("\nhello\n"), "\(result.outputText)")
  }

  @Test(arguments: ["NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"])
  func `GnuTLS is answered`(priority: String) throws {
    let server = try SecureServer(.echo)
    let result = try client(
      "gnutls-cli --insecure --priority '\(priority)' --port \(server.port) 127.0.0.1",
      input: "echo hello; await '^hello$'")
    #expect(result.outputText.contains("Handshake was completed"), "\(result.outputText)")
    #expect(result.outputText.contains("\nhello\n"), "\(result.outputText)")
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium"), "needs Chromium"))
  func `Chromium shows a page`() throws {
    let server = try SecureServer(.page("<p>nightjar</p>"), protocols: ["http/1.1"])
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors",
        "--user-data-dir=\(directory.path("profile"))", "--dump-dom", "https://127.0.0.1:\(server.port)/",
      ], in: directory, limit: 100)
    #expect(result.outputText.contains("<p>nightjar</p>"), "\(result.outputText)\(result.error)")
  }

  @Test func `records arrive byte by byte`() throws {
    let server = try SecureServer(.echo)
    let result = try server.client("bytewise", 300)
    #expect(result.outputText == "echoed TLSv1.3\n", "\(result.error)")
    #expect(server.report.now.bytes == 300)
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors.isEmpty, "\(server.report.now.errors)")
  }

  @Test(arguments: [true, false])
  func `a connection that is cut off is told from one that is closed`(halfClosure: Bool) throws {
    let server = try SecureServer(.echo, halfClosure: halfClosure)
    #expect(try server.client("truncated").status == 0)
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors == [.truncated])
    let closed = try server.client("clean")
    #expect(closed.outputText == "closed by both\n", "\(closed.error)")
    #expect(eventually { server.report.now.closures == 2 })
    #expect(server.report.now.errors == [.truncated])
    #expect(server.report.now.halfClosures == (halfClosure ? 2 : 0))
  }

  @Test func `a connection that is reset is over, and the next client served`() throws {
    let server = try SecureServer(.echo)
    #expect(try server.client("reset").status == 0)
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors.isEmpty, "\(server.report.now.errors)")
    #expect(try server.client("clean").status == 0)
  }

  private static let bytes = 12 << 20
  private static let digest = HashFunction.sha256.digest(of: [UInt8](repeating: 0x5A, count: bytes))
    .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()

  @Test func `a client that has closed its side still gets the whole answer`() throws {
    let server = try SecureServer(.sendAtEnd(Self.bytes))
    let result = try server.client("half_closed")
    #expect(result.outputText == "\(Self.bytes) \(Self.digest)\n", "\(result.error)")
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors.isEmpty && server.report.now.sent == Self.bytes)
  }

  /// NIO closes both sides at once where the output is closed second, and would discard what waits for the client.
  @Test(arguments: [1, 2])
  func `a client that has closed its socket's side too gets the whole answer`(closes: Int) throws {
    let server = try SecureServer(.finishAtEnd(Self.bytes, closes: closes))
    let result = try server.client("finished")
    #expect(result.outputText == "\(Self.bytes) \(Self.digest)\n", "\(result.error)")
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors.isEmpty, "\(server.report.now.errors)")
  }

  @Test func `a client that reads nothing gets nothing encrypted in advance`() throws {
    let server = try SecureServer(.send(Self.bytes))
    let client = try server.start("sleeping")
    #expect(eventually { client.outputSoFar == "ready\n" && server.report.now.mostWaiting > 0 })
    let before = server.report.now
    #expect(!before.isWritable && before.sent == 0)
    // The mark of NIO, one batch, and what TLS adds.
    #expect(before.mostWaiting < 3 * (1 << 16), "\(before.mostWaiting)")
    client.send(SIGUSR1)
    let result = try client.wait(limit: 60)
    #expect(result.outputText == "ready\n\(Self.bytes) \(Self.digest)\n", "\(result.error)")
    #expect(eventually { server.report.now.sent == Self.bytes && server.report.now.closures == 1 })
    #expect(server.report.now.errors.isEmpty)
  }

  @Test func `a server that does not read makes the client wait`() throws {
    let server = try SecureServer(.swallow)
    let pieces = 512
    let client = try server.start("pushing", pieces)
    #expect(eventually { server.report.now.bytes > 0 })
    // What two sockets hold lies between; that it does not all arrive is what counts.
    usleep(300_000)
    #expect(server.report.now.bytes <= 2 << 16 && !client.outputSoFar.contains("sent"))
    try server.readOn()
    #expect(eventually { server.report.now.bytes == pieces << 16 })
    #expect(try client.wait().status == 0)
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors.isEmpty, "\(server.report.now.errors)")
  }

  @Test func `a client that stops in the handshake is not waited for`() throws {
    let server = try SecureServer(.echo, handshakeTime: .seconds(5))
    let patient = try RTSPClient(port: server.port)
    // The beginning of a ClientHello.
    patient.send([0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC])
    #expect(eventually { server.report.now.closures == 1 })
    #expect(server.report.now.errors == [.handshakeTime(seconds: 5)])
    #expect(try server.client("clean").status == 0)
  }

  @Test(arguments: [[UInt8](repeating: 0, count: 200), Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8)])
  func `bytes that are not TLS are refused`(bytes: [UInt8]) throws {
    let server = try SecureServer(.echo)
    let client = try RTSPClient(port: server.port)
    client.send(bytes)
    #expect(eventually { server.report.now.closures == 1 })
    guard case .handshake? = server.report.now.errors.first else { throw CocoaError(.featureUnsupported) }
  }

  @Test func `three hundred clients come at once`() throws {
    let server = try SecureServer(.echo)
    let result = try server.client("crowd", 300, limit: 100)
    #expect(result.outputText == "300 at once\n", "\(result.error)")
    #expect(eventually { server.report.now.closures == 300 })
  }
}
