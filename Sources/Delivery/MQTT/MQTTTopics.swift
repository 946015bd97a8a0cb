import Glibc
import Platform
import TLS

/// The topics of one program at an MQTT broker, and its names in Home Assistant.
package struct MQTTTopics: Hashable, Sendable {
  /// The beginning of the topics.
  package let prefix: String

  /// The longest prefix in bytes.
  package static let limit = 200

  /// Creates topics below `prefix`, which ``isPrefix(_:)`` allows.
  package init(prefix: String) { self.prefix = prefix }

  /// `true` for a text that topics may begin with: printable ASCII without wildcards, without empty levels, and not a topic
  /// of the broker's own.
  package static func isPrefix(_ text: String) -> Bool { text.utf8.count <= limit && isTopic(text) }

  /// `true` for a topic that can be published, in printable ASCII. A broker's words may be anything.
  static func isTopic(_ text: String) -> Bool {
    let isPlain = text.utf8.allSatisfy {
      (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "#")
    }
    let levels = text.split(separator: "/", omittingEmptySubsequences: false)
    return isPlain && !text.hasPrefix("$") && text.utf8.count <= 1024 && !levels.contains { $0.isEmpty }
  }

  /// The prefix without a setting: `nightjar/` and the first part of the host's name.
  package static var usualPrefix: String {
    var buffer = [CChar](repeating: 0, count: 256)
    gethostname(&buffer, buffer.count - 1)
    let name = String(cBuffer: buffer).lowercased().prefix { $0 != "." }
    let plain = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
    return "nightjar/\(plain.isEmpty ? "host" : plain)"
  }

  /// The topic of the availability: `online`, or `offline` by the last will.
  var status: String { "\(prefix)/status" }

  /// The topic of a state or a figure; of the whole program if `camera` is nil.
  func state(_ name: String, of camera: String?) -> String {
    camera.map { "\(prefix)/\($0)/\(name)" } ?? "\(prefix)/\(name)"
  }

  /// Returns the camera and the name of a topic below the prefix that ``state(_:of:)`` makes for a camera; nil for another.
  func parts(of topic: String) -> (camera: String, name: String)? {
    guard topic.hasPrefix("\(prefix)/"), Self.isTopic(topic) else { return nil }
    let levels = topic.dropFirst(prefix.count + 1).split(separator: "/", omittingEmptySubsequences: false)
    guard levels.count == 2, !levels[0].isEmpty else { return nil }
    return (String(levels[0]), String(levels[1]))
  }

  /// The program's identity in Home Assistant, of the characters that a discovery topic may have.
  package var node: String {
    Self.identity(prefix.split(separator: "/").joined(separator: "_"), isFaithful: !prefix.contains("_"), of: prefix)
  }

  /// Returns the identity of a camera in Home Assistant.
  package static func identity(of camera: String) -> String { identity(camera, isFaithful: true, of: camera) }

  /// Returns `text` in letters, digits, `-` and `_`. Where another text could give the same, a hash tells them apart.
  private static func identity(_ text: String, isFaithful: Bool, of whole: String) -> String {
    func isAllowed(_ byte: UInt8) -> Bool {
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
    if isFaithful, text.utf8.allSatisfy(isAllowed) { return text }
    let plain = String(decoding: text.utf8.map { isAllowed($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
    return "\(plain)-\(hexadecimal(HashFunction.sha256.digest(of: whole.utf8).prefix(3)))"
  }

  /// Returns bytes as hexadecimal digits.
  static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef")
    return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }
}
