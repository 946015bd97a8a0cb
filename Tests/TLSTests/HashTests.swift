import TLS
import TestSupport
import Testing

@Suite struct HashTests {
  private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test(arguments: [
    (HashFunction.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
    // RFC 1321 appendix A.5.
    (.md5, "message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    // FIPS 180-4's examples.
    (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
  ])
  func `digests are those of the standards`(function: HashFunction, text: String, digest: String) {
    #expect(hex(function.digest(of: text.utf8)) == digest)
    #expect(function.byteCount * 2 == digest.utf8.count)
  }

  @Test func `codes are those of RFC 4231 and RFC 2202`() {
    let question = Array("what do ya want for nothing?".utf8)
    #expect(
      hex(HashFunction.sha256.authenticationCode(of: question, key: Array("Jefe".utf8)))
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    #expect(
      hex(HashFunction.md5.authenticationCode(of: question, key: Array("Jefe".utf8)))
        == "750c783e6ab0b503eaa86e310a5db738")
  }

  @Test func `secrets are compared as a whole, and random ones differ`() {
    let secret = Secrets.randomBytes(32)
    #expect(secret.count == 32 && secret != Secrets.randomBytes(32))
    #expect(Secrets.isEqual(secret, secret) && Secrets.isEqual([], []))
    for index in secret.indices {
      var other = secret
      other[index] ^= 1
      #expect(!Secrets.isEqual(secret, other))
    }
    #expect(!Secrets.isEqual(secret, Array(secret.dropLast())))
  }
}
