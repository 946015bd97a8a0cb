import Media

/// A font of digits, capitals and a few signs of 5 by 7 dots, drawn at any whole multiple of that size.
package enum BitmapFont {
  /// The number of dots across a character.
  package static let columns = 5
  /// The number of dots down a character.
  package static let rows = 7
  /// The number of dots from the left of a character to the left of the next one.
  package static let advance = 6

  /// Returns the dots of an ASCII character, row by row from the top left, the first in bit 0. Returns none for a space
  /// and for characters that the font lacks.
  package static func dots(_ character: UInt8) -> UInt64 {
    character < 128 ? glyphs[Int(character)] : 0
  }

  /// Returns the width of `count` characters in luma samples, with `scale` samples to a dot.
  static func width(of count: Int, scale: Int) -> Int {
    (count * advance - 1) * scale
  }

  /// Draws ASCII `text` with the luma value `luma`; chroma stays unchanged. Draws only characters that lie completely
  /// within the picture.
  static func draw(
    _ text: Span<UInt8>, x: Int, y: Int, scale: Int, luma: UInt8, into planes: borrowing NV12Planes
  ) {
    guard scale > 0, y >= 0, y + rows * scale <= planes.size.height else { return }
    for index in text.indices {
      let left = x + index * advance * scale
      guard left >= 0, left + columns * scale <= planes.size.width else { continue }
      var dots = dots(text[index])
      while dots != 0 {
        let position = dots.trailingZeroBitCount
        let (row, column) = position.quotientAndRemainder(dividingBy: columns)
        let dot = planes.luma + (y + row * scale) * planes.lumaStride + left + column * scale
        for line in 0..<scale { (dot + line * planes.lumaStride).update(repeating: luma, count: scale) }
        dots &= dots - 1
      }
    }
  }

  private static let glyphs: [UInt64] = {
    var glyphs = [UInt64](repeating: 0, count: 128)
    for (character, drawing) in drawings {
      var position: UInt64 = 0
      for dot in drawing.utf8 where dot != UInt8(ascii: " ") {
        if dot == UInt8(ascii: "#") { glyphs[Int(character.value)] |= 1 << position }
        position += 1
      }
    }
    return glyphs
  }()

  private static let drawings: [(Unicode.Scalar, String)] = [
    ("#", ".#.#. .#.#. ##### .#.#. ##### .#.#. .#.#."),
    ("-", "..... ..... ..... ##### ..... ..... ....."),
    (".", "..... ..... ..... ..... ..... .##.. .##.."),
    ("0", ".###. #...# #..## #.#.# ##..# #...# .###."),
    ("1", "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###."),
    ("2", ".###. #...# ....# ...#. ..#.. .#... #####"),
    ("3", ".###. #...# ....# ..##. ....# #...# .###."),
    ("4", "...#. ..##. .#.#. #..#. ##### ...#. ...#."),
    ("5", "##### #.... ####. ....# ....# #...# .###."),
    ("6", "..##. .#... #.... ####. #...# #...# .###."),
    ("7", "##### ....# ...#. ..#.. .#... .#... .#..."),
    ("8", ".###. #...# #...# .###. #...# #...# .###."),
    ("9", ".###. #...# #...# .#### ....# ...#. .##.."),
    (":", "..... ..#.. ..... ..... ..... ..#.. ....."),
    ("A", ".###. #...# #...# ##### #...# #...# #...#"),
    ("B", "####. #...# #...# ####. #...# #...# ####."),
    ("C", ".###. #...# #.... #.... #.... #...# .###."),
    ("D", "###.. #..#. #...# #...# #...# #..#. ###.."),
    ("E", "##### #.... #.... ####. #.... #.... #####"),
    ("F", "##### #.... #.... ####. #.... #.... #...."),
    ("G", ".###. #...# #.... #.### #...# #...# .###."),
    ("H", "#...# #...# #...# ##### #...# #...# #...#"),
    ("I", ".###. ..#.. ..#.. ..#.. ..#.. ..#.. .###."),
    ("J", "..### ...#. ...#. ...#. ...#. #..#. .##.."),
    ("K", "#...# #..#. #.#.. ##... #.#.. #..#. #...#"),
    ("L", "#.... #.... #.... #.... #.... #.... #####"),
    ("M", "#...# ##.## #.#.# #.#.# #...# #...# #...#"),
    ("N", "#...# ##..# #.#.# #..## #...# #...# #...#"),
    ("O", ".###. #...# #...# #...# #...# #...# .###."),
    ("P", "####. #...# #...# ####. #.... #.... #...."),
    ("Q", ".###. #...# #...# #...# #.#.# #..#. .##.#"),
    ("R", "####. #...# #...# ####. #.#.. #..#. #...#"),
    ("S", ".#### #.... #.... .###. ....# ....# ####."),
    ("T", "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#.."),
    ("U", "#...# #...# #...# #...# #...# #...# .###."),
    ("V", "#...# #...# #...# #...# #...# .#.#. ..#.."),
    ("W", "#...# #...# #...# #.#.# #.#.# ##.## #...#"),
    ("X", "#...# #...# .#.#. ..#.. .#.#. #...# #...#"),
    ("Y", "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#.."),
    ("Z", "##### ....# ...#. ..#.. .#... #.... #####"),
  ]
}
