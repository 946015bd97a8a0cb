import CQREncode
package import Platform

/// A QR code (ISO/IEC 18004) of a text.
package struct QRCode: Sendable {
  /// The rows of modules from the top, without the quiet zone around them: `1` is dark, `0` is light.
  package let rows: [String]

  /// Makes the code, which reads even where 7 % of it are damaged (level L): the fewer modules, the easier a phone reads
  /// them from a screen.
  ///
  /// - Throws: ``SystemFailure`` for a text that is longer than the largest code, 2953 bytes.
  package init(_ text: String) throws(SystemFailure) {
    guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L) else {
      throw SystemFailure("QRcode_encodeString8bit")
    }
    defer { QRcode_free(code) }
    let width = Int(code.pointee.width)
    // The lowest bit of a module is its colour.
    rows = (0..<width).map { row in
      String((0..<width).map { code.pointee.data[row * width + $0] & 1 == 1 ? "1" : "0" })
    }
  }

  /// The code for a terminal: two rows a line, black on white, with the quiet zone of four modules.
  package static func text(_ rows: [String]) -> String {
    let quiet = 4
    let width = (rows.first?.utf8.count ?? 0) + 2 * quiet
    let empty = [Bool](repeating: false, count: width)
    let side = [Bool](repeating: false, count: quiet)
    var modules = [[Bool]](repeating: empty, count: quiet)
    modules += rows.map { side + $0.utf8.map { $0 == UInt8(ascii: "1") } + side }
    modules += [[Bool]](repeating: empty, count: quiet + (rows.count.isMultiple(of: 2) ? 0 : 1))
    return stride(from: 0, to: modules.count, by: 2).map { row in
      let line = zip(modules[row], modules[row + 1]).map { upper, lower in
        switch (upper, lower) {
        case (true, true): "█"
        case (true, false): "▀"
        case (false, true): "▄"
        case (false, false): " "
        }
      }.joined()
      // Colours of its own: a terminal may be dark or light.
      return "\u{1b}[30;107m\(line)\u{1b}[0m\n"
    }.joined()
  }
}
