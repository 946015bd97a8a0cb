import Foundation

/// The lines of a session description (RFC 8866), without their types.
package struct DescriptionLines: Sendable {
  private let lines: [(type: String, value: String)]

  package init(_ text: String) {
    lines = text.components(separatedBy: "\r\n").filter { !$0.isEmpty }.map { line in
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (String(parts[0]), parts.count == 2 ? String(parts[1]) : "")
    }
  }

  /// The values of all lines of a type, such as `m`, in their order.
  package subscript(type: String) -> [String] { lines.filter { $0.type == type }.map(\.value) }

  /// The values of all attributes of a name, such as `rtpmap`, of the session and of all media, in their order. Attributes
  /// without a value are left out.
  package func attributes(_ name: String) -> [String] {
    self["a"].filter { $0.hasPrefix("\(name):") }.map { String($0.dropFirst(name.count + 1)) }
  }
}
