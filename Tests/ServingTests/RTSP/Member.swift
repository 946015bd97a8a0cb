import Foundation
import TestSupport
import Testing

/// A client that logs in as RFC 7616 has it, by MD5 and with one nonce for as long as that is good; the hashes are
/// md5sum's.
final class Member {
  let client: RTSPClient
  private let (user, password): (String, String)
  private let directory: TemporaryDirectory
  private var nonce: Substring = ""
  private var count = 0

  init(_ client: RTSPClient, _ user: String, _ password: String) throws {
    (self.client, self.user, self.password) = (client, user, password)
    directory = try TemporaryDirectory()
    let reply = try client.request("DESCRIBE")
    #expect(reply.status == 401)
    let challenge = try #require(reply.headers["www-authenticate"]?.first { $0.contains("MD5") }, "\(reply)")
    nonce = try #require(challenge.components(separatedBy: " nonce=\"").last?.prefix { $0 != "\"" })
  }

  private func hash(_ text: String) throws -> String {
    let result = try Subprocess.run(["sh", "-c", "printf %s \"$0\" | md5sum", text], in: directory)
    return String(result.outputText.prefix(32))
  }

  func text(_ method: String, _ uri: String? = nil, _ headers: [String] = []) throws -> String {
    count += 1
    let number = String(format: "%08x", count)
    let uri = uri ?? client.url
    let (one, two) = try (hash("\(user):nightjar:\(password)"), hash("\(method):\(uri)"))
    let response = try hash("\(one):\(nonce):\(number):c0ffee:auth:\(two)")
    let login =
      "Authorization: Digest username=\"\(user)\", realm=\"nightjar\", nonce=\"\(nonce)\", uri=\"\(uri)\", "
      + "algorithm=MD5, qop=auth, nc=\(number), cnonce=\"c0ffee\", response=\"\(response)\""
    return client.text(method, uri, headers + [login])
  }

  func request(_ method: String, _ uri: String? = nil, _ headers: [String] = []) throws -> RTSPClient.Reply {
    client.send(try text(method, uri, headers).utf8)
    return try client.reply()
  }

  /// Has the stream sent in that way; the session.
  func play(_ transport: String) throws -> String {
    let setup = try request("SETUP", client.url + "/trackID=0", ["Transport: \(transport)"])
    #expect(setup.status == 200)
    let session = try #require(setup.session)
    #expect(try request("PLAY", nil, ["Session: \(session)"]).status == 200)
    return session
  }
}
