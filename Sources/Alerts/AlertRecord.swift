import FoundationEssentials

/// One line of the history's file: the CRC-32 of the JSON in eight hexadecimal digits, a space, the JSON of an event, and
/// a line feed.
enum AlertRecord {
  /// The longest line in bytes.
  static let limit = 4096

  /// Returns the line of an event; nil for one that is too long.
  static func line(of alert: Alert) -> [UInt8]? {
    guard let json = alert.json else { return nil }
    let line = hexadecimal(checksum(json)) + [0x20] + json + [0x0a]
    return line.count <= limit ? line : nil
  }

  /// Returns the event of a line without its line feed; nil for a damaged line.
  static func alert(of line: ArraySlice<UInt8>) -> Alert? {
    guard line.count > 9, line.count < limit, line[line.startIndex + 8] == 0x20 else { return nil }
    let json = line[(line.startIndex + 9)...]
    guard line.prefix(8).elementsEqual(hexadecimal(checksum(json))) else { return nil }
    // Of another version of the program, if the checksum is right: it counts as damaged.
    return try? JSONDecoder().decode(Alert.self, from: Data(json))
  }

  /// Returns the CRC-32 of IEEE 802.3, as zlib's `crc32`.
  static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
    var value = UInt32.max
    for byte in bytes { value = table[Int((value ^ UInt32(byte)) & 0xff)] ^ (value >> 8) }
    return ~value
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
  }

  private static func hexadecimal(_ value: UInt32) -> [UInt8] {
    stride(from: 28, through: 0, by: -4).map { shift in
      let digit = UInt8(value >> UInt32(shift) & 15)
      return digit < 10 ? 0x30 + digit : 0x61 + digit - 10
    }
  }
}

extension Alert {
  /// The event as one line of JSON, the same for its way into the file and out of the program; nil for a confidence that is
  /// no number. The detectors' are within 0…1.
  package var json: [UInt8]? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { Array($0) }
  }
}
