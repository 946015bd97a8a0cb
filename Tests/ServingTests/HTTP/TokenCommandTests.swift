import Foundation
import TestSupport
import Testing

/// `nightjar token`, and the file that it writes.
@Suite struct TokenCommandTests {
  private static func token(_ arguments: String..., in directory: TemporaryDirectory) throws -> Subprocess.Result {
    try Subprocess.run([nightjarPath, "token"] + arguments + ["--tokens", directory.path("t/tokens")], in: directory)
  }

  @Test func `a token is shown once and kept as openssl's SHA-256 of it, for owner and group`() throws {
    let directory = try TemporaryDirectory()
    let made = try Self.token("add", "doorbell", in: directory)
    #expect(made.status == 0)
    let next = "Next: nightjar stream --rtsp --https --tokens \(directory.path("t/tokens"))\n"
    #expect(made.error.hasSuffix(next), "\(made.error)")
    let token = made.outputText.trimmingCharacters(in: .newlines)
    #expect(token.utf8.count == 43 && made.outputText == token + "\n")
    let path = directory.path("t/tokens")
    let hash = try Subprocess.run(
      ["sh", "-c", "printf %s \"$0\" | openssl dgst -sha256 -r | cut -d' ' -f1", token], in: directory)
    #expect(
      try String(contentsOfFile: path, encoding: .utf8)
        == "doorbell:token-sha256=\(hash.outputText.dropLast()):role=view\n")
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o640)
    let other = try Self.token("add", "wall", "--role", "read", in: directory)
    let file = try String(contentsOfFile: path, encoding: .utf8)
    let taken = try Self.token("add", "doorbell", in: directory)
    #expect(taken.status == 64 && taken.outputText.isEmpty)
    #expect(
      taken.log.failures == [
        "a token doorbell exists in \(path) already. Choose another name, or make the old token void: nightjar token "
          + "add doorbell --replace --tokens \(path)"
      ])
    #expect(try String(contentsOfFile: path, encoding: .utf8) == file)
    #expect(try Self.token("role", "doorbell", "control", in: directory).status == 0)
    // The token stays.
    #expect(
      try String(contentsOfFile: path, encoding: .utf8)
        == file.replacing("\(hash.outputText.dropLast()):role=view", with: "\(hash.outputText.dropLast()):role=control")
    )
    let replaced = try Self.token("add", "doorbell", "--replace", in: directory)
    #expect(
      replaced.log.count(of: "doorbell has a new token in \(path), role control; the old one is void") == 1,
      "\(replaced.error)")
    #expect(Set([token, other.outputText, replaced.outputText]).count == 3)
    #expect(try Self.token("list", in: directory).outputText == "doorbell\tcontrol\nwall\tread\n")
    #expect(try Self.token("role", "attic", "read", in: directory).status == 66)
    #expect(try Self.token("role", "wall", "king", in: directory).status == 64)
    #expect(try Self.token("remove", "doorbell", in: directory).status == 0)
    let unknown = try Self.token("remove", "doorbell", in: directory)
    #expect(unknown.status == 66)
    #expect(
      unknown.log.failures == [
        "there is no token doorbell in \(path). List the names: nightjar token list --tokens \(path)"
      ])
    #expect(try Self.token("list", in: directory).outputText == "wall\tread\n")
    let last = try Self.token("remove", "wall", in: directory)
    #expect(last.outputText.hasSuffix("No tokens are left. Add one: nightjar token add NAME --tokens \(path)\n"))
  }

  @Test func `names, files and rights that cannot be are one line each`() throws {
    let directory = try TemporaryDirectory()
    #expect(try Self.token("add", "a:b", in: directory).status == 64)
    #expect(try Self.token("list", in: directory).status == 66)
    #expect(try Self.token("add", "doorbell", in: directory).status == 0)
    let path = directory.path("t/tokens")
    #expect(chmod(path, 0o644) == 0)
    let exposed = try Self.token("list", in: directory)
    #expect(exposed.status == 77)
    #expect(
      exposed.log.failures == [
        "tokens file: \(path) has mode 644, so every user of this host can reach its secrets: run chmod o= \(path)"
      ])
    #expect(chmod(path, 0o640) == 0)
    let line = try String(contentsOfFile: path, encoding: .utf8)
    for (content, words) in [
      ("# mine\n\(line)\(line)", "line 3: doorbell is there twice"), ("doorbell\n", "line 1: doorbell is not followed"),
      ("doorbell:SHA-256=\(String(repeating: "0", count: 64))\n", "line 1: doorbell is not followed"),
      ("\u{7}\n", "line 1: a user's name"),
      (line.replacing("role=view", with: "role=king"), "line 1: the hash of doorbell"),
      (line.replacing("role=view", with: "role=view:role=view"), "line 1: the hash of doorbell"),
    ] {
      try Data(content.utf8).write(to: URL(fileURLWithPath: path))
      #expect(chmod(path, 0o640) == 0)
      let broken = try Self.token("list", in: directory)
      #expect(broken.status == 65, "\(content)")
      #expect(broken.error.contains(words) && broken.error.split(separator: "\n").count == 1, "\(broken.error)")
    }
    // Comments stay where they are.
    try Data("# mine\n\(line)\n".utf8).write(to: URL(fileURLWithPath: path))
    #expect(chmod(path, 0o640) == 0)
    #expect(try Self.token("remove", "doorbell", in: directory).status == 0)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "# mine\n\n")
  }
}
