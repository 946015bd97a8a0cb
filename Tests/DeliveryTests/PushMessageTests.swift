import Delivery
import Foundation
import Platform
import TLS
import TestSupport
import Testing

/// The encryption of Web Push and the login of the host, against the examples of the RFCs and Python's cryptography.
@Suite struct PushMessageTests {
  /// RFC 8291, appendix A.
  private enum Example {
    static let message = "When I grow up, I want to be a watermelon"
    static let receiver = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    static let receiverKey = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
    static let sender = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
    static let senderKey = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
    static let secret = "BTBZMqHH6r4Tts7J_aSIgg"
    static let salt = "DGv6ra1nlYgDCS1FRnbzlw"
    static let shared = "kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs"
    static let body =
      "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
      + "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
  }

  private static func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.bytes(text)) }

  /// A private key from its number: an `ECPrivateKey` of RFC 5915 with the name of P-256.
  private static func key(_ number: String) throws -> PrivateKey {
    let curve: [UInt8] = [0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
    let der = try [0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20] + bytes(number) + curve
    let text = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    return try PrivateKey(pem: Array("-----BEGIN EC PRIVATE KEY-----\n\(text)\n-----END EC PRIVATE KEY-----\n".utf8))
  }

  @Test func `a message is byte for byte that of RFC 8291`() throws {
    let key = try Self.key(Example.senderKey)
    #expect(try Base64URL.text(key.publicPoint) == Example.sender)
    #expect(try Base64URL.text(key.sharedSecret(with: Self.bytes(Example.receiver))) == Example.shared)
    let other = try Self.key(Example.receiverKey)
    #expect(try Base64URL.text(other.sharedSecret(with: Self.bytes(Example.sender))) == Example.shared)
    let message = try PushMessage(
      Array(Example.message.utf8), padding: 0, to: Self.bytes(Example.receiver), secret: Self.bytes(Example.secret),
      key: key, salt: Self.bytes(Example.salt))
    #expect(Base64URL.text(message.bytes) == Example.body)
  }

  @Test
  func `Python decrypts the RFC's message and ours, whose lengths say nothing, and each has its own key and salt`()
    throws
  {
    let directory = try TemporaryDirectory()
    func decrypted(_ body: String) throws -> String {
      try PushService.judge(
        "decrypt", ["private": Example.receiverKey, "auth": Example.secret, "body": body], in: directory)
    }
    #expect(try decrypted(Example.body) == Example.message)
    let subscription = try PushSubscription(
      endpoint: "https://push.example.net/a", publicKey: Example.receiver, secret: Example.secret, owner: "anna")
    var (lengths, starts): (Set<Int>, Set<[UInt8]>) = ([], [])
    for text in ["", "a", String(repeating: "b", count: 512), String(repeating: "\u{1F476}", count: 100)] {
      let message = try PushMessage(Array(text.utf8), to: subscription)
      #expect(try decrypted(Base64URL.text(message.bytes)) == text)
      lengths.insert(message.bytes.count)
      starts.insert(Array(message.bytes[..<86]))
    }
    // The header has 86 bytes, the delimiter one and the tag 16. Nothing needs no block.
    #expect(lengths == [86 + 17, 86 + 17 + 512] && starts.count == 4)
  }

  @Test func `a token has the header and the claims of RFC 8292, and Python verifies its signature and ours`() throws {
    let example =
      "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1"
      + "YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0"
    let signature = "i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA"
    let exampleKey = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
    #expect(
      VAPIDKey.signedText(
        audience: "https://push.example.net", expires: 1_453_523_768, contact: "mailto:push@example.com") == example)
    let directory = try TemporaryDirectory()
    func claims(_ token: String, _ key: String) throws -> [String: Any]? {
      let said = try PushService.judge("verify", ["token": token, "key": key], in: directory)
      return try JSONSerialization.jsonObject(with: Data(said.utf8), options: .fragmentsAllowed) as? [String: Any]
    }
    #expect(try claims("\(example).\(signature)", exampleKey)?["sub"] as? String == "mailto:push@example.com")
    let key = try VAPIDKey()
    #expect(
      try PushService.judge("verify", ["token": "\(example).\(signature)", "key": key.publicText], in: directory)
        == "wrong")
    // A number of a signature that begins with zeros has them: one of 256.
    for number in 0..<20 {
      let value = try key.authorization(
        for: "https://push.example.net:8443", expires: Int64(number), contact: number == 0 ? nil : #"mailto:"\/@a"#)
      let parts = try #require(value.wholeMatch(of: #/vapid t=([\w.\-]+), k=([\w\-]+)/#))
      #expect(parts.2 == key.publicText)
      let found = try #require(try claims(String(parts.1), key.publicText))
      #expect(found["aud"] as? String == "https://push.example.net:8443" && found["exp"] as? Int == number)
      #expect(found["sub"] as? String == (number == 0 ? nil : #"mailto:"\/@a"#))
    }
  }

  @Test func `a signature always has its 64 bytes`() throws {
    let key = try PrivateKey()
    for number in 0..<2000 {
      #expect(try key.signature(of: Array("\(number)".utf8)).count == 64)
    }
  }

  @Test func `a key that is kept is the same, and one on another curve is none`() throws {
    let key = try VAPIDKey()
    let kept = try VAPIDKey(PrivateKey(pem: Array(key.pem.utf8)))
    #expect(kept.publicText == key.publicText && Base64URL.bytes(key.publicText)?.count == 65)
    let directory = try TemporaryDirectory()
    for curve in ["secp384r1", "secp256k1"] {
      let made = try Subprocess.run(["openssl", "ecparam", "-name", curve, "-genkey", "-noout"], in: directory)
      let pem = Array(made.outputText.utf8)
      // Both have other points, and the second one has the same length.
      #expect(throws: (any Error).self) {
        let other = try PrivateKey(pem: pem)
        _ = try VAPIDKey(other)
      }
    }
  }

  @Test(arguments: [
    ("http://push.example.net/a", Example.receiver, Example.secret, PushSubscription.Fault.endpoint),
    ("https://user@push.example.net/a", Example.receiver, Example.secret, .endpoint),
    ("file:///etc/passwd", Example.receiver, Example.secret, .endpoint),
    ("https://push.example.net/a\r\nX: y", Example.receiver, Example.secret, .endpoint),
    ("https://push.example.net/" + String(repeating: "a", count: 1024), Example.receiver, Example.secret, .endpoint),
    ("https://192.168.1.7/a", Example.receiver, Example.secret, .privateAddress),
    ("https://127.0.0.1:8443/v1/reload", Example.receiver, Example.secret, .privateAddress),
    ("https://[::1]/a", Example.receiver, Example.secret, .privateAddress),
    ("https://[::ffff:10.0.0.1]/a", Example.receiver, Example.secret, .privateAddress),
    ("https://169.254.169.254/latest", Example.receiver, Example.secret, .privateAddress),
    ("https://a/b", String(Example.receiver.dropLast()), Example.secret, .publicKey),
    ("https://a/b", "A" + Example.receiver.dropFirst(), Example.secret, .publicKey),
    // Of the right length, and not on the curve.
    ("https://a/b", String(Example.receiver.dropLast(2)) + "i5", Example.secret, .publicKey),
    ("https://a/b", "BA" + String(repeating: "A", count: 85), Example.secret, .publicKey),
    ("https://a/b", String(repeating: "B", count: 1 << 20), Example.secret, .publicKey),
    ("https://a/b", Example.receiver.replacing("_", with: "/"), Example.secret, .publicKey),
    ("https://a/b", Example.receiver, "BTBZMqHH6r4Tts7J_aSI", .secret),
    ("https://a/b", Example.receiver, "BTBZMqHH6r4Tts7J_aSIggAA", .secret),
    ("https://a/b", Example.receiver, "BTBZMqHH6r4Tts7J aSIgg", .secret),
    ("https://a/b", Example.receiver, "", .secret),
  ])
  func `a subscription that is none is refused`(
    endpoint: String, publicKey: String, secret: String, fault: PushSubscription.Fault
  ) {
    #expect(throws: fault) {
      try PushSubscription(endpoint: endpoint, publicKey: publicKey, secret: secret, owner: "eve")
    }
  }

  @Test func `Base64 for URLs goes there and back, with any length, and with padding`() throws {
    for count in 0..<70 {
      let bytes = Secrets.randomBytes(count)
      let text = Base64URL.text(bytes)
      #expect(Base64URL.bytes(text) == bytes && text.utf8.allSatisfy { ![0x2B, 0x2F, 0x3D].contains($0) })
      #expect(Base64URL.bytes(text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)) == bytes)
    }
    for text in ["a", "ab+d", "ab/d", "ab c", "äbcd", "ab\u{0}d"] { #expect(Base64URL.bytes(text) == nil, "\(text)") }
  }
}
