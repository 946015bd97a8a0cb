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
}
