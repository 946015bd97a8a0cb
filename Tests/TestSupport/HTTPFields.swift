import Foundation

/// The head of an HTTP answer, without a body. If the text has the heads of several answers, as curl writes them, it is
/// the last one.
package struct HTTPFields: Sendable {
  /// The version in lower case, such as `http/1.1`, or `nil` if there is no answer.
  package let version: String?
  /// The status of the answer, or `nil` if there is no answer.
  package let status: Int?
  /// The values by the lower-case names of their fields.
  private let values: [String: [String]]

  package init(_ text: String) {
    let heads = text.components(separatedBy: "\r\n\r\n").filter { !$0.isEmpty }
    let lines = (heads.last ?? "").components(separatedBy: "\r\n")
    version = lines[0].split(separator: " ").first?.lowercased()
    status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) }
    var values: [String: [String]] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map {
        $0.trimmingCharacters(in: .whitespaces)
      }
      if parts.count == 2 { values[parts[0].lowercased(), default: []].append(parts[1]) }
    }
    self.values = values
  }

  /// Returns the values of a field, in their order.
  package func all(_ name: String) -> [String] { values[name.lowercased()] ?? [] }

  /// The value of a field, or `nil` if the field is missing or repeated.
  package subscript(name: String) -> String? {
    let values = all(name)
    return values.count == 1 ? values[0] : nil
  }
}
