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

  @Test func `derived keys are those of RFC 5869, appendices A.1 to A.3`() {
    func derived(_ input: [UInt8], _ salt: [UInt8], _ info: [UInt8], _ count: Int) -> String {
      hex(HashFunction.sha256.derivedKey(of: input, salt: salt, info: info, count: count))
    }
    let input = [UInt8](repeating: 0x0b, count: 22)
    #expect(
      derived(input, Array(0x00...0x0c), Array(0xf0...0xf9), 42)
        == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
    #expect(
      derived(Array(0x00...0x4f), Array(0x60...0xaf), Array(0xb0...0xff), 82)
        == "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        + "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87")
    #expect(
      derived(input, [], [], 42)
        == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")
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
