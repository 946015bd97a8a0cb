/// A word in a shell's syntax.
package enum ShellWord {
  /// Returns `text` quoted so that a shell reads it as one word, whatever it contains.
  package static func quoted(_ text: String) -> String {
    let isPlain = !text.isEmpty && text.utf8.allSatisfy(isPlain)
    if isPlain { return text }
    return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: "/._-+=@%".utf8.contains(byte)
    }
  }
}
