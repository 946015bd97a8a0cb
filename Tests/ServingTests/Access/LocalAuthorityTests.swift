import Foundation
import Serving
import TLS
import TestSupport
import Testing

@Suite struct LocalAuthorityTests {
  private static let now = Int64(1_800_000_000)
  private static let day = Int64(86_400)
  private static let names = HostNames(
    names: ["box.example", "box.local", "localhost"],
    addresses: [[127, 0, 0, 1], [192, 168, 1, 5], [203, 0, 113, 7], [0xFD] + [UInt8](repeating: 1, count: 15)])

  private static func identity(
    in directory: TemporaryDirectory, _ names: HostNames = names, at now: Int64 = now
  ) throws -> SelfSignedIdentity {
    try SelfSignedIdentity(directory: directory.url.path, names: names, at: now)
  }

  /// Returns the verdict of a program that checks certificates on the host's.
  private static func verify(_ program: [String], in directory: TemporaryDirectory) throws -> Subprocess.Result {
    try Subprocess.run(program, in: directory)
  }

  @Test func `OpenSSL and GnuTLS take the certificate that it signs, for names and addresses of the host`() throws {
    let directory = try TemporaryDirectory()
    #expect(try LocalAuthority(directory: directory.url.path) == nil)
    let now = Int64(time(nil))
    let (authority, isNew) = try LocalAuthority.make(directory: directory.url.path, names: Self.names, at: now)
    #expect(isNew)
    #expect(try !LocalAuthority.make(directory: directory.url.path, names: Self.names, at: now).isNew)
    let own = try Self.identity(in: directory, at: now)
    #expect(own.origin == .first && own.identity.authority == authority.der)
    let (ca, host) = (directory.path("ca.pem"), directory.path("host.pem"))
    try authority.pem.write(toFile: ca, atomically: false, encoding: .utf8)
    try own.identity.certificates.write(toFile: host, atomically: false, encoding: .utf8)
    for name in [
      ["-verify_hostname", "box.local"], ["-verify_hostname", "box.example"], ["-verify_ip", "192.168.1.5"],
    ] {
      let result = try Self.verify(
        ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca] + name + [host], in: directory)
      #expect(result.status == 0, "\(result.outputText) \(result.error)")
    }
    // An address that others on the internet may have is not its business.
    let public_ = try Self.verify(
      ["openssl", "verify", "-CAfile", ca, "-verify_ip", "203.0.113.7", host], in: directory)
    #expect(public_.status != 0)
    let other = try Self.verify(
      ["certtool", "--verify", "--load-ca-certificate", ca, "--infile", host, "--verify-hostname", "box.local"],
      in: directory)
    #expect(other.status == 0, "\(other.outputText) \(other.error)")
    #expect(
      try FileManager.default.attributesOfItem(atPath: directory.path("authority.pem"))[.posixPermissions] as? Int
        == 0o600)
  }

  @Test func `a certificate for another bank does not stand`() throws {
    let directory = try TemporaryDirectory()
    let now = Int64(time(nil))
    let (authority, _) = try LocalAuthority.make(directory: directory.url.path, names: Self.names, at: now)
    let ca = directory.path("ca.pem")
    try authority.pem.write(toFile: ca, atomically: false, encoding: .utf8)
    // Whoever has stolen the key signs with OpenSSL.
    let script = """
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout key.pem -out request.pem &&
      printf 'subjectAltName=DNS:bank.example' > names &&
      openssl x509 -req -in request.pem -CA authority.pem -CAkey authority.pem -extfile names -days 30 -out stolen.pem
      """
    let made = try Subprocess.run(
      ["sh", "-c", "cd \(directory.url.path) && \(script)"], in: directory)
    try #require(made.status == 0, "\(made.error)")
    let result = try Self.verify(["openssl", "verify", "-CAfile", ca, directory.path("stolen.pem")], in: directory)
    #expect(result.status != 0 && (result.outputText + result.error).contains("permitted subtree violation"))
  }

  @Test func `the certificate is renewed before its end and for another address, and else stays`() throws {
    let directory = try TemporaryDirectory()
    let before = try Self.identity(in: directory)
    #expect(before.identity.authority == nil)
    _ = try LocalAuthority.make(directory: directory.url.path, names: Self.names, at: Self.now)
    let first = try Self.identity(in: directory)
    #expect(first.origin == .issued && first.identity.certificate != before.identity.certificate)
    let kept = try Self.identity(in: directory, at: Self.now + 700 * Self.day)
    #expect(kept.origin == .kept && kept.identity.certificate == first.identity.certificate)
    #expect(kept.identity.authority != nil)
    let later = try Self.identity(in: directory, at: Self.now + 740 * Self.day)
    #expect(later.origin == .issued && later.identity.notAfter == Self.now + (740 + 820) * Self.day)
    // Apple's devices take no more.
    #expect(later.identity.notAfter - later.identity.notBefore <= 825 * Self.day)
    var names = HostNames(names: Self.names.names, addresses: Self.names.addresses + [[10, 0, 0, 9]])
    let moved = try Self.identity(in: directory, names, at: Self.now + 740 * Self.day)
    #expect(moved.origin == .issued)
    // A public address changes nothing, nor does a name that the authority may not sign for.
    names = HostNames(names: names.names + ["new.example"], addresses: names.addresses + [[198, 51, 100, 1]])
    #expect(try Self.identity(in: directory, names, at: Self.now + 740 * Self.day).origin == .kept)
  }
}
