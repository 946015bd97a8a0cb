import Foundation
import Media
import Serving
import TestSupport
import Testing

@Suite struct UsersFileTests {
  private func user(_ name: String) throws -> UsersFile.User {
    try .init(name: UserName(name), password: "long enough")
  }

  @Test func `comments and order stay, the mode is 0640, nothing is left beside`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("new/users")
    try UsersFile.edit(path, mayCreate: true) { _ = try $0.set(user("bob")) }
    let before = try String(contentsOfFile: path, encoding: .utf8)
    try ("# first\n\n" + before + "# last\n").write(toFile: path, atomically: false, encoding: .utf8)
    try UsersFile.edit(path, mayCreate: true) { _ = try $0.set(user("eve")) }
    let wasThere = try UsersFile.edit(path, mayCreate: false) { try $0.set(user("bob")) }
    #expect(wasThere)
    let after = try String(contentsOfFile: path, encoding: .utf8)
    #expect(after.hasPrefix("# first\n\n" + before + "# last\neve:SHA-256="))
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o640)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path("new")) == ["users"])
    #expect(try UsersFile(contentsOf: path).users.map(\.name.description) == ["bob", "eve"])
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    #expect(throws: UsersFileError.file(.exposed(path: path, mode: 0o644))) { try UsersFile(contentsOf: path) }
    #expect(
      PrivateFileError.exposed(path: path, mode: 0o644).description
        == "\(path) has mode 644, so every user of this host can reach its secrets: run chmod o= \(path)")
  }

  @Test func `a user without a role may watch, and the line of one who may watch has none`() throws {
    let hash = String(repeating: "a", count: 32)
    let text = "bob:MD5=\(hash)\neve:MD5=\(hash):role=read\nann:role=control:MD5=\(hash)\nzoe:MD5=\(hash):role=view\n"
    var file = try UsersFile(parsing: Array(text.utf8))
    #expect(file.users.map(\.role) == [.view, .read, .control, .view])
    #expect(file.bytes == Array(text.utf8))
    for (name, role) in [("bob", Role.control), ("eve", .view)] {
      var user = try #require(file[UserName(name)])
      user.role = role
      try file.set(user)
    }
    #expect(
      String(decoding: file.bytes, as: UTF8.self)
        == "bob:MD5=\(hash):role=control\neve:MD5=\(hash)\nann:role=control:MD5=\(hash)\nzoe:MD5=\(hash):role=view\n")
    #expect(Role.allCases == [.read, .view, .control] && Role.allCases == Role.allCases.sorted())
  }

  @Test func `a token without a role is told apart, and may look`() throws {
    let hash = String(repeating: "a", count: 64)
    var file = try TokensFile(
      parsing: Array("old:token-sha256=\(hash)\n# mine\nnew:token-sha256=\(hash):role=read\n".utf8))
    let (old, new) = (try UserName("old"), try UserName("new"))
    #expect(file.namesWithoutRole == [old])
    #expect(file.role(of: old) == .view && file.role(of: new) == .read)
    let none = try UserName("none")
    #expect(file.role(of: none) == nil)
    let before = file
    file.setRole(.view, of: old)
    #expect(file == before && file.namesWithoutRole.isEmpty)
    file.setRole(.control, of: old)
    #expect(file != before)
    let isThere = file.setRole(.control, of: none)
    #expect(!isThere)
    #expect(
      String(decoding: file.bytes, as: UTF8.self)
        == "old:token-sha256=\(hash):role=control\n# mine\nnew:token-sha256=\(hash):role=read\n")
  }

  @Test func `two who write at once lose nothing`() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("users")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<8 {
        group.addTask { try UsersFile.edit(path, mayCreate: true) { _ = try $0.set(user("user\(index)")) } }
      }
      try await group.waitForAll()
    }
    #expect(try UsersFile(contentsOf: path).users.count == 8)
  }

  @Test func `a broken line is told by its number`() throws {
    let hash = String(repeating: "a", count: 32)
    for (text, line) in [
      ("#\nbob\n", 2), ("bob:MD5=\(hash)\n\nbob:MD5=\(hash)", 3), ("b b:MD5=\(hash)", 1), ("bob:MD5=xy", 1),
      ("bob:MD4=\(hash)", 1), (":MD5=\(hash)", 1), ("\n#" + String(repeating: "x", count: 600), 2),
      ("bob:MD5=\(hash):role=king", 1), ("bob:MD5=\(hash):role=view:role=view", 1), ("bob:MD5=\(hash):role", 1),
      ("bob:role=view", 1),
    ] {
      let error = #expect(throws: UsersFileSyntaxError.self, "\(text)") { try UsersFile(parsing: Array(text.utf8)) }
      #expect(error?.line == line)
    }
  }
}

@Suite struct TLSIdentityTests {
  private let now = Int64(Date().timeIntervalSince1970)

  private func openssl(_ arguments: [String], in directory: TemporaryDirectory) throws -> String {
    let result = try Subprocess.run(["openssl"] + arguments, in: directory)
    #expect(result.status == 0, "\(result.error)")
    return result.outputText
  }

  @Test func `OpenSSL takes the machine's own certificate, and it is kept`() throws {
    let directory = try TemporaryDirectory()
    let names = HostNames(names: ["box", "box.local", "localhost"], addresses: [[127, 0, 0, 1]])
    let made = try SelfSignedIdentity(directory: directory.path("state"), names: names, at: now)
    #expect(made.origin == .first)
    let shown = try openssl(["x509", "-in", made.path, "-noout", "-fingerprint", "-sha256"], in: directory)
    #expect(shown.contains("=\(made.identity.fingerprint)\n"))
    let text = try openssl(["x509", "-in", made.path, "-noout", "-text"], in: directory)
    for words in ["DNS:box, DNS:box.local, DNS:localhost, IP Address:127.0.0.1", "prime256v1", "CA:FALSE"] {
      #expect(text.contains(words), "\(text)")
    }
    for check in [["-verify_hostname", "box.local"], ["-verify_ip", "127.0.0.1"]] {
      _ = try openssl(["verify", "-CAfile", made.path] + check + [made.path], in: directory)
    }
    #expect(try FileManager.default.attributesOfItem(atPath: made.path)[.posixPermissions] as? Int == 0o600)
    let kept = try SelfSignedIdentity(directory: directory.path("state"), names: names, at: now + 86_400)
    #expect(kept.origin == .kept && kept.identity.fingerprint == made.identity.fingerprint)
    let later = try SelfSignedIdentity(directory: directory.path("state"), at: now + 3700 * 86_400)
    #expect(later.origin == .expired(made.identity.notAfter))
    try "nonsense".write(toFile: made.path, atomically: false, encoding: .utf8)
    let again = try SelfSignedIdentity(directory: directory.path("state"), at: now)
    guard case .replaced = again.origin else { throw CocoaError(.fileReadCorruptFile) }
  }

  @Test(arguments: [
    ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], ["EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
    ["EC", "-pkeyopt", "ec_paramgen_curve:P-521"], ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], ["ED25519"],
  ])
  func `what OpenSSL makes is loaded, and a key of another is refused`(algorithm: [String]) throws {
    let directory = try TemporaryDirectory()
    let (key, certificate) = (directory.path("key"), directory.path("certificate"))
    _ = try openssl(["genpkey", "-algorithm"] + algorithm + ["-out", key], in: directory)
    _ = try openssl(
      ["req", "-x509", "-key", key, "-subj", "/CN=box", "-days", "1", "-out", certificate], in: directory)
    let identity = try TLSIdentity(certificateFile: certificate, keyFile: key)
    #expect(identity.validity(at: now + 600) == .valid)
    #expect(identity.validity(at: now + 200_000) == .expired(since: identity.notAfter))
    let other = try SelfSignedIdentity(directory: directory.path("state"), at: now)
    #expect(throws: TLSIdentityError.mismatch(certificate: certificate, key: other.path)) {
      try TLSIdentity(certificateFile: certificate, keyFile: other.path)
    }
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
    #expect(throws: TLSIdentityError.file(.exposed(path: key, mode: 0o644))) {
      try TLSIdentity(certificateFile: certificate, keyFile: key)
    }
  }

  @Test(arguments: ["secp256k1", "brainpoolP256r1"])
  func `a key on a curve with which no client could connect is refused`(curve: String) throws {
    let directory = try TemporaryDirectory()
    let (key, certificate) = (directory.path("key"), directory.path("certificate"))
    _ = try openssl(
      ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(curve)", "-out", key], in: directory)
    _ = try openssl(
      ["req", "-x509", "-key", key, "-subj", "/CN=box", "-days", "1", "-out", certificate], in: directory)
    let error = #expect(throws: TLSIdentityError.self) { try TLSIdentity(certificateFile: certificate, keyFile: key) }
    let text = error?.description ?? ""
    #expect(text.contains("its curve, \(curve)") && text.contains("P-256, P-384, P-521, RSA or Ed25519"), "\(text)")
  }
}
