import Foundation
import TestSupport
import Testing

/// Statements of the documents about the program, checked against the program.
@Suite struct DocumentationTests {
  // MARK: - Links

  /// A path from the repository's root, of one from the folder of a document.
  private func resolve(_ path: String, from document: String) -> String {
    var components = document.split(separator: "/").dropLast()
    for component in path.split(separator: "/") where component != "." {
      if component == "..", !components.isEmpty { components.removeLast() } else { components.append(component) }
    }
    return components.joined(separator: "/")
  }

  @Test func `every link within the documents leads to a file and a heading that there are`() throws {
    let documents = try MarkdownDocument.all()
    let byName = Dictionary(uniqueKeysWithValues: documents.map { ($0.name, $0) })
    var count = 0
    for document in documents {
      for (index, line) in document.lines.enumerated() where document.languages[index] == nil {
        for match in line.matches(of: /\]\(([^)\s]+)\)/) {
          let target = String(match.output.1)
          if target.contains("://") || target.hasPrefix("mailto:") { continue }
          count += 1
          let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
          let path = parts[0].isEmpty ? document.name : resolve(parts[0], from: document.name)
          let place = "\(document.name):\(index + 1): \(target)"
          let file = packageRoot.appendingPathComponent(path).path
          #expect(FileManager.default.fileExists(atPath: file), "\(place): no such file")
          guard parts.count == 2 else { continue }
          #expect(byName[path]?.anchors.contains(parts[1]) == true, "\(place): no such heading")
        }
      }
    }
    #expect(count > 20)
  }

  @Test func `the README leads to every document`() throws {
    let documents = try MarkdownDocument.all()
    let readme = try #require(documents.first { $0.name == "README.md" }).lines.joined(separator: "\n")
    for document in documents where document.name.hasPrefix("docs/") {
      #expect(readme.contains("](\(document.name)"), "README.md does not lead to \(document.name)")
    }
  }

  // MARK: - Configuration

  @Test func `every configuration in the documents is one`() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("nightjar.toml")
    var count = 0
    for document in try MarkdownDocument.all() {
      for block in document.blocks("toml") {
        try block.text.write(toFile: file, atomically: false, encoding: .utf8)
        let result = try Subprocess.run([nightjarPath, "config", "check", "--config", file], in: directory, limit: 60)
        #expect(result.status == 0, "\(document.name):\(block.line): \(result.error)\(block.text)")
        count += 1
      }
    }
    #expect(count > 5)
  }

  // MARK: - Commands

  private struct Command: Decodable {
    struct Argument: Decodable {
      struct Name: Decodable {
        let kind: String
        let name: String
      }
      let names: [Name]?
    }
    let commandName: String
    let subcommands: [Command]?
    let arguments: [Argument]?

    var options: Set<String> {
      var options: Set = ["--help", "-h", "--version", "--experimental-dump-help"]
      for name in (arguments ?? []).flatMap({ $0.names ?? [] }) {
        options.insert((name.kind == "long" ? "--" : "-") + name.name)
      }
      return options
    }
  }

  private struct Help: Decodable { let command: Command }

  /// The words of the commands of nightjar in a text, without the name itself.
  private func commands(in text: String) -> [[String]] {
    var commands: [[String]] = []
    var current: [String]?
    for word in text.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init) {
      if word == "#" { break }  // A remark to the end of the line.
      if let before = current, !(before.isEmpty && word == "nightjar") {
        // Where the shell ends a command.
        let ends = ["|", "||", "&&", ";", "&", ">", ">>", "<"].contains(word)
        var bare = word
        while let last = bare.last, ";)`,".contains(last) { bare.removeLast() }
        if !ends { current = before + [bare] }
        if ends || bare != word {
          if let current { commands.append(current) }
          current = nil
        }
      } else if word == "nightjar" || word.hasSuffix("/nightjar") || word.hasSuffix("`nightjar")
        || word.hasSuffix("(nightjar")
      {
        current = []
      }
    }
    if let current { commands.append(current) }
    return commands
  }

  /// Returns the fault of a command, as the program's own help has it; nil if there is none.
  private func fault(of words: [String], in root: Command) -> String? {
    // A service or a user may be called so, too.
    guard let first = words.first, first != "help", first.allSatisfy({ $0.isASCII && $0.isLowercase }) else {
      return nil
    }
    guard let begun = root.subcommands?.first(where: { $0.commandName == first }) else {
      return "no nightjar \(first)"
    }
    var command = begun
    for (index, word) in words.enumerated().dropFirst() {
      if word == "--", let stream = root.subcommands?.first(where: { $0.commandName == "stream" }) {
        command = stream
      } else if word.hasPrefix("-") {
        let option = word.prefix { $0 != "=" && $0 != "[" }
        let isNumber = option.dropFirst().first.map { "0123456789.".contains($0) } ?? false
        if option.count > 1, !isNumber, !option.contains("…"), !command.options.contains(String(option)) {
          return "no option \(option) of nightjar \(words[..<index].joined(separator: " "))"
        }
      } else if let next = command.subcommands?.first(where: { $0.commandName == word }) {
        command = next
      } else if index == 1, let subcommands = command.subcommands, !subcommands.isEmpty,
        word.allSatisfy({ $0.isLowercase })
      {
        return "no nightjar \(first) \(word)"
      }
    }
    return nil
  }

  private func help() throws -> Command {
    let directory = try TemporaryDirectory()
    let dump = try Subprocess.run([nightjarPath, "--experimental-dump-help"], in: directory, limit: 60)
    return try JSONDecoder().decode(Help.self, from: dump.output).command
  }

  @Test func `every command of the documents has the options that they give it`() throws {
    let root = try help()
    var count = 0
    for document in try MarkdownDocument.all() where document.name != "CHANGELOG.md" {
      for (index, line) in document.lines.enumerated() where document.languages[index] != "log" {
        let texts =
          document.languages[index] == nil ? line.matches(of: /`([^`]+)`/).map { String($0.output.1) } : [line]
        for words in texts.flatMap({ commands(in: $0) }) {
          count += 1
          let fault = fault(of: words, in: root)
          #expect(fault == nil, "\(document.name):\(index + 1): \(fault ?? "")")
        }
      }
    }
    #expect(count > 50)
  }

  @Test(arguments: [
    ("nightjar stream --rtps", false), ("sudo nightjar ctl status --watch", true), ("nightjar ctl stat", false),
    ("x; .build/release/nightjar stream --to rtp://h:2 --sdp=f | tee -a x", true),
    ("nightjar doctor -- --source test --no-such", false), ("journalctl -u nightjar -p warning", true),
    ("sudo -u nightjar nightjar user ad anna", false), ("nightjar strem --rtsp", false),
  ])
  func `a command that is none is found`(text: String, isRight: Bool) throws {
    let root = try help()
    #expect(commands(in: text).allSatisfy { fault(of: $0, in: root) == nil } == isRight)
  }

  // MARK: - What the program says

  /// The sources' text, with literals that are cut over several lines in one piece.
  private func sources() throws -> String {
    let folder = packageRoot.appendingPathComponent("Sources").path
    var text = ""
    for case let name as String in FileManager.default.enumerator(atPath: folder) ?? .init()
    where name.hasSuffix(".swift") {
      text += try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
    }
    return text.replacing(/"\s*\n\s*\+ "/, with: "").replacing("\\\"", with: "\"")
  }

  @Test func `what the documents have the program say stands in its sources`() throws {
    let sources = try sources()
    var count = 0
    for document in try MarkdownDocument.all() {
      for block in document.blocks("log") {
        for line in block.text.split(separator: "\n") {
          count += 1
          // What the program puts in between is "…" in the documents.
          for part in line.components(separatedBy: "…") {
            let part = part.trimmingCharacters(in: .whitespaces)
            #expect(part.count < 4 || sources.contains(part), "\(document.name):\(block.line): '\(part)'")
          }
        }
      }
    }
    #expect(count > 10)
  }
}
