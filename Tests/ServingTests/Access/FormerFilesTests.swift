import Foundation
import Serving
import TestSupport
import Testing

/// Files that were written before the system's OpenSSL did the cryptography: by BoringSSL, and swift-certificates.
@Suite struct FormerFilesTests {
  @Test func `a certificate of then is kept, and its fingerprint with it`() throws {
    let directory = try TemporaryDirectory()
    let path = try directory.write(Self.identity.utf8, as: SelfSignedIdentity.fileName)
    chmod(path, 0o600)
    let kept = try SelfSignedIdentity(directory: directory.url.path, at: 1_800_000_000)
    #expect(kept.origin == .kept)
    #expect(
      kept.identity.fingerprint
        == "30:D9:7E:11:A1:4C:ED:7B:81:1B:6A:5C:71:E6:B8:3B:83:2F:E6:84:C3:11:23:00:A7:E7:CF:E9:A0:0E:40:24")
    #expect(kept.identity.notBefore == 1_767_139_200 && kept.identity.notAfter == 2_110_747_604)
    // Byte by byte, so that a reload does not take it for another.
    #expect(kept.identity.privateKey + kept.identity.certificates == Self.identity)
  }

  @Test func `users and tokens of then are let in`() throws {
    let users = try UsersFile(
      parsing: Array(
        ("alice:SHA-256=a46e75a57f2f9ec5cdfc810778f9a62216daa0a9bfb188d87b6e9099b28dcf9b"
          + ":MD5=48c7251c1bf731ff4281442f4a26eb79\n").utf8))
    let right = try #require(BasicCredentials(encoded: Data("alice:correct horse".utf8).base64EncodedString()))
    let wrong = try #require(BasicCredentials(encoded: Data("alice:correct house".utf8).base64EncodedString()))
    #expect(users.user(right)?.description == "alice")
    #expect(users.user(wrong) == nil)
    let again = try UsersFile.User(name: UserName("alice"), password: "correct horse")
    #expect(again == users.users.first)
    let tokens = try TokensFile(
      parsing: Array(
        "doorbell:token-sha256=6db74556b314a6797b1ca9e58dd56d5d84136ac33e2431da230051b965ade1eb\n".utf8))
    #expect(tokens.name(of: "XK1n0e5pg3mOyLXN20j5lhf8RWM0Nb8pKGTGU4AF1y8")?.description == "doorbell")
    #expect(tokens.name(of: "XK1n0e5pg3mOyLXN20j5lhf8RWM0Nb8pKGTGU4AF1y9") == nil)
  }

  private static let identity = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNqRGmtps3AR46sec
    gTg1yqGzNdWoJG+LGEbUSxd1tKihRANCAASpMUpCrCDuj8frKhc/pTSEWtklVCPJ
    H0ONR2N37/7i8UNDBd4nP6Xb5eDjD+SyOTTR+Efa16gxoGxQ6mz2X//2
    -----END PRIVATE KEY-----
    -----BEGIN CERTIFICATE-----
    MIIBrzCCAVWgAwIBAgIVAMV09+NqSJe+f9mXWsXA0PfEIHWbMAoGCCqGSM49BAMC
    MA0xCzAJBgNVBAMMAnZtMB4XDTI1MTIzMTAwMDAwMFoXDTM2MTExOTIyNDY0NFow
    DTELMAkGA1UEAwwCdm0wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASpMUpCrCDu
    j8frKhc/pTSEWtklVCPJH0ONR2N37/7i8UNDBd4nP6Xb5eDjD+SyOTTR+Efa16gx
    oGxQ6mz2X//2o4GRMIGOMAwGA1UdEwEB/wQCMAAwDgYDVR0PAQH/BAQDAgeAMBMG
    A1UdJQQMMAoGCCsGAQUFBwMBMDoGA1UdEQQzMDGCAnZtggh2bS5sb2NhbIIJbG9j
    YWxob3N0hwR/AAABhxAAAAAAAAAAAAAAAAAAAAABMB0GA1UdDgQWBBS2YF4NzF5S
    RSQ1nHrVxWxcsuD8nTAKBggqhkjOPQQDAgNIADBFAiEA2FzpEfRhmnchcjBaRS6O
    0Rs6yRtXT/TJVC/cvUHQBP8CIH4SRootl7FZX8aZT0MFhWhl3DsmmzdXW765h15M
    TXw0
    -----END CERTIFICATE-----

    """
}
