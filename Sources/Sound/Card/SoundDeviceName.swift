import Platform

/// The name of a sound device as alsa-lib writes it: `hw:CARD=C920,DEV=0`, `plughw:1`, `default`.
package struct SoundDeviceName: Hashable, Sendable, CustomStringConvertible {
  /// The name.
  package let text: String

  /// The most bytes of a name.
  package static let lengthLimit = 128

  /// Creates a name. alsa-lib reads a name as a piece of its configuration language, in which some plugins write files
  /// or run programs. A name of one definition, a colon and its arguments, without quotes, braces, slashes and bars,
  /// names a device and nothing else:
  ///
  /// - A second colon would give arguments to a definition within the first one, as in `plug:file:x`.
  /// - A dot before the colon would name a definition by its path, as in `pcm.file:x`.
  ///
  /// - Throws: ``SoundError/name(_:)``.
  package init(_ text: String) throws(SoundError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard 1...Self.lengthLimit ~= text.utf8.count, parts.count <= 2, !Self.writers.contains(String(parts[0])),
      !parts[0].isEmpty, parts[0].utf8.allSatisfy(Self.isPlain),
      parts.dropFirst().allSatisfy({ $0.utf8.allSatisfy { Self.isPlain($0) || "=,.".utf8.contains($0) } })
    else { throw .name(text) }
    self.text = text
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: "_-".utf8.contains(byte)
    }
  }

  /// The definitions that write what they read into a file.
  private static let writers: Set = ["file", "tee"]

  /// Creates the name of a card's device from the numbers of both, as in `hw:1,0`.
  package init(card: Int, device: Int) {
    text = "hw:\(card),\(device)"
  }

  /// The name by which the device is opened: a hardware device goes through alsa-lib's conversion of formats.
  package var converting: String { text == "hw" || text.hasPrefix("hw:") ? "plug" + text : text }

  /// Returns the arguments by their names, `CARD`, `DEV` and `SUBDEV`, as in `hw:CARD=C920,DEV=0` and `hw:1,0`; nil for a
  /// name that is no card's.
  private var arguments: [String: String]? {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    guard Self.cards.contains(parts[0]) else { return nil }
    var arguments: [String: String] = [:]
    let values = parts.dropFirst().first?.split(separator: ",", omittingEmptySubsequences: false) ?? []
    for (position, value) in values.enumerated() {
      let pair = value.split(separator: "=", maxSplits: 1).map(String.init)
      if pair.count == 2 {
        arguments[pair[0]] = pair[1]
      } else if position < Self.positions.count, let value = pair.first {
        arguments[Self.positions[position]] = value
      }
    }
    return arguments
  }

  /// `true` if the name is that of a card's device, with no plugin of the user's between.
  package var isCard: Bool { arguments != nil }

  /// The definitions that open the device of a card.
  private static let cards: Set = ["hw", "plughw", "sysdefault", "default", "dsnoop", "front"]
  /// The arguments of these definitions, in their order.
  private static let positions = ["CARD", "DEV", "SUBDEV"]

  /// Returns `true` if the name leads to the device of that card. A name without a card or a device means the first one.
  package func leads(toCard number: Int, id: String, device: Int) -> Bool {
    guard let arguments else { return false }
    let card = arguments["CARD"] ?? "0"
    return (card == id || card == "\(number)") && arguments["DEV"] ?? "0" == "\(device)"
  }

  /// The name.
  package var description: String { text }
}
