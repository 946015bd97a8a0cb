/// A date, a time, or both, in TOML's syntax by RFC 3339.
package struct TOMLDateTime {
  /// The four kinds of TOML.
  package enum Kind {
    case offsetDateTime, localDateTime, localDate, localTime
  }

  /// The kind.
  package let kind: Kind
  /// The source text.
  package let text: String

  /// Parses `word` as a whole; nil where it is no date or time, or not in the calendar.
  init?(_ word: ArraySlice<UInt8>) {
    text = String(decoding: word, as: UTF8.self)
    var rest = text.utf8[...]
    let date = Self.take("0000-00-00", &rest)
    if let date {
      let isLeap = date[0] % 4 == 0 && (date[0] % 100 != 0 || date[0] % 400 == 0)
      let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
      guard (1...12).contains(date[1]), (1...days[date[1] - 1]).contains(date[2]) else { return nil }
      if rest.isEmpty {
        kind = .localDate
        return
      }
      guard let mark = rest.popFirst(), "Tt ".utf8.contains(mark) else { return nil }
    }
    // A leap second has the number 60.
    guard let time = Self.take("00:00:00", &rest), time[0] < 24, time[1] < 60, time[2] <= 60 else { return nil }
    if rest.first == UInt8(ascii: ".") {
      let digits = rest.dropFirst().prefix(while: TOMLNumber.isDigit)
      guard !digits.isEmpty else { return nil }
      rest = rest[digits.endIndex...]
    }
    kind = date == nil ? .localTime : rest.isEmpty ? .localDateTime : .offsetDateTime
    if rest.isEmpty { return }
    guard date != nil, let mark = rest.popFirst() else { return nil }
    if "Zz".utf8.contains(mark), rest.isEmpty { return }
    guard "+-".utf8.contains(mark), let offset = Self.take("00:00", &rest), offset[0] < 24, offset[1] < 60,
      rest.isEmpty
    else { return nil }
  }

  /// Reads text in the pattern of `form`, with any digits; nil where it does not match.
  ///
  /// - Returns: The numbers.
  private static func take(_ form: String, _ rest: inout Substring.UTF8View) -> [Int]? {
    let text = rest.prefix(form.utf8.count)
    let isSame = zip(text, form.utf8).allSatisfy { $1 == UInt8(ascii: "0") ? TOMLNumber.isDigit($0) : $0 == $1 }
    guard isSame, text.count == form.utf8.count else { return nil }
    rest = rest.dropFirst(text.count)
    return text.split { !TOMLNumber.isDigit($0) }.compactMap { Int(Substring($0)) }
  }
}
