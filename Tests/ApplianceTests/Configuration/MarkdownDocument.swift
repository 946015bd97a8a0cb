import Foundation
import TestSupport

/// A document of the repository, by lines.
struct MarkdownDocument {
  /// The path from the repository's root.
  let name: String
  let lines: [String]
  /// The word behind the fence of the block of code that each line stands in; an indented
  /// block's is empty, prose has none.
  let languages: [String?]

  init(name: String, text: String) {
    self.name = name
    lines = text.components(separatedBy: "\n")
    var languages: [String?] = []
    var fence: String?
    for line in lines {
      if let language = fence {
        languages.append(line.hasPrefix("```") ? nil : language)
        if line.hasPrefix("```") { fence = nil }
      } else if line.hasPrefix("```") {
        fence = String(line.dropFirst(3))
        languages.append(nil)
      } else {
        languages.append(line.hasPrefix("    ") ? "" : nil)
      }
    }
    self.languages = languages
  }

  /// The documents at the repository's root and in `docs`.
  static func all() throws -> [MarkdownDocument] {
    let manager = FileManager.default
    var names = try manager.contentsOfDirectory(atPath: packageRoot.path)
    for case let name as String in manager.enumerator(atPath: packageRoot.appendingPathComponent("docs").path)
      ?? .init()
    // DocC checks its own.
    where !name.contains(".docc/") {
      names.append("docs/\(name)")
    }
    return try names.filter { $0.hasSuffix(".md") }.sorted().map { name in
      MarkdownDocument(
        name: name, text: try String(contentsOf: packageRoot.appendingPathComponent(name), encoding: .utf8))
    }
  }

  /// The blocks behind a fence with that word, with the number of their first line.
  func blocks(_ language: String) -> [(line: Int, text: String)] {
    var blocks: [(line: Int, text: String)] = []
    for (index, line) in lines.enumerated() where languages[index] == language {
      if index > 0, languages[index - 1] == language {
        blocks[blocks.count - 1].text += line + "\n"
      } else {
        blocks.append((index + 1, line + "\n"))
      }
    }
    return blocks
  }

  /// The paragraphs and list items, each with the number of its first line and in one line.
  var paragraphs: [(line: Int, text: String)] {
    var paragraphs: [(line: Int, text: String)] = []
    var isWithin = false
    for (index, line) in lines.enumerated() {
      let text = line.trimmingCharacters(in: .whitespaces)
      // Indented code cannot follow a paragraph's line: that is a part of the paragraph.
      let isText = languages[index] == nil || languages[index]?.isEmpty == true && isWithin
      let isProse = isText && !text.isEmpty && !["#", "|", "<!--", "```"].contains { text.hasPrefix($0) }
      let isItem = text.prefixMatch(of: #/(?:[-*]|\d+\.) /#) != nil
      if isProse, isWithin, !isItem {
        paragraphs[paragraphs.count - 1].text += " " + text
      } else if isProse {
        paragraphs.append((index + 1, text))
      }
      isWithin = isProse
    }
    return paragraphs
  }

  /// The names that GitHub gives to the headings: small letters, digits, '-' and '_', blanks as '-'.
  var anchors: Set<String> {
    var anchors: Set<String> = []
    for (index, line) in lines.enumerated() where languages[index] == nil && line.hasPrefix("#") {
      let heading = line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
      let name = String(
        heading.compactMap { character -> Character? in
          if character == " " { return "-" }
          return character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
        })
      var unique = name
      var count = 0
      while !anchors.insert(unique).inserted {
        count += 1
        unique = "\(name)-\(count)"
      }
    }
    return anchors
  }
}
