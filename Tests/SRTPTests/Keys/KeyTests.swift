import Foundation
import Media
import Platform
import SRTP
import TestSupport
import Testing

@Suite struct KeyTests {
  /// The example of RFC 4568 section 9.1 and the one of section 6.1 share this key.
  static let secret = "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"
  static let text = "AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"

  @Test func `the example of RFC 4568 is read and written`() throws {
    let attribute = try CryptoAttribute(parsing: "1 \(Self.text)")
    #expect(attribute.tag == 1)
    #expect(attribute.key.bytes == Array("=-n@%^x!Bjufr9)?,#5h\\`=&]{qiPQ".utf8))
    #expect(attribute.text == "1 \(Self.text)")
  }

  @Test(arguments: SRTPSuite.allCases)
  func `a key comes back as it was written, and shows itself nowhere else`(suite: SRTPSuite) throws {
    let key = SRTPKey(random: suite)
    #expect(key != SRTPKey(random: suite))
    #expect(try CryptoAttribute(parsing: CryptoAttribute(tag: 999_999_999, key: key).text).key == key)
    var dumped = ""
    dump(key, to: &dumped)
    for text in ["\(key)", String(reflecting: key), dumped, "\([key])"] {
      #expect(!text.contains(key.inlineText) && !text.contains("\(key.bytes[0]), \(key.bytes[1])"), "\(text)")
    }
  }

  @Test(arguments: [
    ("", "tag"), ("x \(text)", "tag"), ("1234567890 \(text)", "tag"), ("-1 \(text)", "tag"), ("1", "suite"),
    ("1 AES_CM_128_HMAC_SHA1_32 inline:PS1u", "not a known suite"),
    ("1 aes_cm_128_hmac_sha1_80 inline:A", "suite"),
    ("1 AES_CM_128_HMAC_SHA1_80", "inline:"), ("1 AES_CM_128_HMAC_SHA1_80 uri:abc", "inline:"),
    ("1 AES_CM_128_HMAC_SHA1_80 inline:", "0 bytes"), ("1 AES_CM_128_HMAC_SHA1_80 inline:PS1u", "3 bytes"),
    ("1 AEAD_AES_256_GCM inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR", "30 bytes"),
    ("1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaV!!", "base64"),
    ("1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBRA", "base64"),
    ("1 \(text)|2^20", "lifetime"), ("1 \(text)|2^20|1:4", "lifetime"), ("1 \(text)|1:4", "identifier"),
    ("1 \(text);inline:AAAA", "second key"), ("1 \(text) KDR=4", "session parameter"),
    ("1 \(text) UNENCRYPTED_SRTP", "session parameter"), ("1 \(text)" + String(repeating: "A", count: 600), "512"),
  ])
  func `an attribute that is wrong or not supported is refused with the reason`(text: String, reason: String) {
    let error = #expect(throws: SRTPKeyError.self) { try CryptoAttribute(parsing: text) }
    let description = error?.description ?? ""
    #expect(description.contains(reason), "\(description)")
    #expect(!description.contains("\n") && !description.contains("PS1u"), "\(description)")
  }

  private func refusal(_ content: String, mode: Int = 0o600, of directory: TemporaryDirectory) throws -> SRTPKeyError? {
    let path = directory.path("key")
    try? FileManager.default.removeItem(atPath: path)
    try content.write(toFile: path, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    return #expect(throws: SRTPKeyError.self) { try SRTPKey(contentsOf: path) }
  }

  @Test func `a key file is read as a line of SDP or without its name`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("key")
    for content in ["\(Self.text)", "# the nursery's\n\n\(Self.text)\n", "a=crypto:1 \(Self.text)\r\n"] {
      try content.write(toFile: path, atomically: false, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      #expect(try SRTPKey(contentsOf: path).inlineText == "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR")
    }
  }

  @Test func `a key file that others can reach, or that has no key, is refused`() throws {
    let directory = try TemporaryDirectory()
    for mode in [0o644, 0o604, 0o602, 0o666] {
      let error = try refusal(Self.text, mode: mode, of: directory)
      #expect(error == .exposed(path: directory.path("key"), mode: UInt32(mode)))
      #expect(error?.kind == .noPermission)
    }
    #expect(try refusal("", of: directory)?.kind == .data)
    for (content, reason) in [
      ("\(Self.text)\n\(Self.text)", "2 lines instead of one with a key"),
      (
        "AES_CM_128_HMAC_SHA1_80 inline:AAAA",
        SRTPKeyError.length(3, suite: .aes128CounterHMAC80).description
      ), ("RC4 inline:AAAA", SRTPKeyError.suite.description),
    ] {
      #expect(try refusal(content, of: directory) == .content(path: directory.path("key"), reason: reason))
    }
    #expect(
      SRTPKeyError.exposed(path: "k", mode: 0o644).description
        == "everybody can reach the key in k (mode 644): chmod 600 it, and make a new key")
    // A slip shows no key: this goes to terminals and journals.
    for slip in ["inline:\(Self.secret)", Self.secret, "a=crypto:1 inline:\(Self.secret)", "SUITE:\(Self.secret)"] {
      #expect(try refusal(slip, of: directory)?.description.contains("PS1u") == false)
    }
    let long = String(repeating: "x", count: SRTPKey.fileLimit + 1)
    #expect(try refusal(long, of: directory)?.description.contains("1024") == true)
    let missing = directory.path("none")
    #expect(throws: SRTPKeyError.missing(path: missing)) { try SRTPKey(contentsOf: missing) }
    #expect(throws: SRTPKeyError.notAFile(path: "/dev/null")) { try SRTPKey(contentsOf: "/dev/null") }
    #expect(throws: SRTPKeyError.notAFile(path: directory.url.path)) { try SRTPKey(contentsOf: directory.url.path) }
  }
}
