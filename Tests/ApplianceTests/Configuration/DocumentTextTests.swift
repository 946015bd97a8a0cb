import Foundation
import Testing

/// The text of the documents by itself.
@Suite struct DocumentTextTests {
  /// Returns `true` if the text of a paragraph or list item ends where a sentence does.
  private static func isWhole(_ text: String) -> Bool { text.last.map { ".:;!?)`…*>".contains($0) } ?? false }

  @Test func `every paragraph and list item of the documents ends with punctuation`() throws {
    var count = 0
    for document in try MarkdownDocument.all() {
      for paragraph in document.paragraphs {
        count += 1
        let place = "\(document.name):\(paragraph.line)"
        #expect(Self.isWhole(paragraph.text), "\(place): ends with '\(paragraph.text.suffix(40))'")
      }
    }
    #expect(count > 500)
  }

  @Test func `a list item that stops in the middle is found`() {
    let document = MarkdownDocument(
      name: "x.md",
      text: """
        # A heading

        A paragraph of
        two lines.
        | a table | none |

        - *too slow*: `nightjar doctor` measures the
        - *lost*: see
            below:

            an indented command
        ```toml
        rtsp = true
        ```
        1. The end
        """)
    #expect(document.paragraphs.map { $0.line } == [3, 7, 8, 15])
    #expect(document.paragraphs.first?.text == "A paragraph of two lines.")
    let cut = document.paragraphs.filter { !Self.isWhole($0.text) }
    #expect(cut.map { $0.line } == [7, 15])
  }

  /// Returns `true` if a command of curl asks nightjar for something that needs a log-in once there are users, and gives none. Plain
  /// HTTP on this host needs none, nor does the control socket.
  private static func lacksLogin(_ command: String) -> Bool {
    guard let begin = command.firstRange(of: "curl "), !command.contains("--unix-socket") else { return false }
    let rest = command[begin.lowerBound...]
    let isForNightjar = ["https://BOX", "https://localhost", "https://127.0.0.1", "http://BOX"].contains {
      rest.contains($0)
    }
    return isForNightjar && !["-u ", "Authorization: ", "token="].contains { rest.contains($0) }
  }

  @Test func `every command of curl in the documents gives the log-in that it needs`() throws {
    var count = 0
    for document in try MarkdownDocument.all() {
      for (index, line) in document.lines.enumerated() {
        let commands =
          document.languages[index] == nil ? line.matches(of: /`([^`]+)`/).map { String($0.output.1) } : [line]
        for command in commands where command.contains("curl ") {
          count += 1
          #expect(!Self.lacksLogin(command), "\(document.name):\(index + 1): \(command)")
        }
      }
    }
    #expect(count > 10)
  }

  @Test(arguments: [
    ("curl -k -u anna https://BOX:8443/v1/status", false), ("curl -k https://BOX:8443/v1/status", true),
    ("curl https://127.0.0.1:8443/healthz", true), ("curl 'https://BOX:8443/healthz?token=…'", false),
    ("curl -H 'Authorization: Bearer …' https://BOX:8443/metrics", false), ("curl http://BOX:8080/metrics", true),
    ("curl -O http://127.0.0.1:8080/snapshot.jpg", false), ("sudo apt install curl", false),
    ("sudo curl --unix-socket /run/nightjar/control.sock http://localhost/v1/status", false),
  ])
  func `a command of curl without a log-in is found`(command: String, isFound: Bool) {
    #expect(Self.lacksLogin(command) == isFound)
  }

  @Test func `where a document has this host play without a log-in, it has the log-in of users too`() throws {
    var count = 0
    for document in try MarkdownDocument.all() {
      for (index, line) in document.lines.enumerated() where line.contains("rtsp://localhost") {
        count += 1
        let near = document.lines[index..<min(index + 5, document.lines.count)]
        #expect(near.contains { $0.contains(":PASSWORD@localhost") }, "\(document.name):\(index + 1): \(line)")
      }
    }
    #expect(count > 2)
  }
}
