/// The difference between two words, to suggest the intended one.
package enum EditDistance {
  /// The most letters of a word that are compared: more than any name has.
  package static let lettersLimit = 64

  /// Returns the element whose word differs least from `written`: the one that was probably meant. Nil if more than a
  /// third of the letters differ. Every word has a nearest one, but beyond that it is another word, not a typing error.
  package static func meant<Element>(
    by written: [UInt8], among elements: [Element], word: (Element) -> [UInt8]
  ) -> Element? {
    let ranked = elements.map { ($0, between(written, word($0))) }
    guard let nearest = ranked.min(by: { $0.1 < $1.1 }), nearest.1 <= max(1, written.count / 3) else { return nil }
    return nearest.0
  }

  /// Returns the number of letters to insert, delete, replace or swap with their neighbour to turn one word into the
  /// other (optimal string alignment, Damerau 1964).
  package static func between(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var before: [Int] = []
    var last = Array(0...right.count)
    for (row, letter) in left.enumerated() {
      var current = [row + 1]
      for (column, other) in right.enumerated() {
        var best = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
        if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
          best = min(best, before[column - 1] + 1)
        }
        current.append(best)
      }
      before = last
      last = current
    }
    return last[right.count]
  }
}
