/// A value of TOML.
package enum TOMLValue {
  case string(String)
  case integer(Int64)
  case float(Double)
  case boolean(Bool)
  case dateTime(TOMLDateTime)
  /// An array between brackets.
  case array([TOMLValue])
  case table(TOMLTable)
  /// An array of tables, created by `[[name]]`.
  case tables(TOMLTableList)
}

/// A table of TOML: keys with their values.
package final class TOMLTable {
  /// The origin of a table, which decides what may be added to it.
  enum Kind {
    /// `[name]`, `[[name]]`, or the document.
    case header
    /// A longer header: `[a.b]` creates `a`.
    case superTable
    /// A dotted key: `a.b = 1` creates `a`.
    case dottedKey
    /// Braces.
    case inline
  }

  /// A key with its value, and the line of the key.
  package struct Entry {
    /// The key, without its table.
    package let key: String
    /// The line of the key in the file.
    package let line: Int
    /// The value.
    package let value: TOMLValue
  }

  /// The keys and values, in the order of the document.
  package private(set) var entries: [Entry] = []
  /// The origin of the table.
  var kind: Kind
  /// The indices of ``entries`` by the bytes of their keys. Strings would be equal where their letters only look the
  /// same.
  private var indices: [[UInt8]: Int] = [:]

  /// Creates an empty table.
  init(_ kind: Kind) { self.kind = kind }

  /// Returns the entry of `key`.
  subscript(key: String) -> Entry? { indices[Array(key.utf8)].map { entries[$0] } }

  /// Adds an entry for a key that the table does not have.
  func add(_ key: String, line: Int, _ value: TOMLValue) {
    indices[Array(key.utf8)] = entries.count
    entries.append(Entry(key: key, line: line, value: value))
  }
}

/// An array of tables, to which `[[name]]` adds one.
package final class TOMLTableList {
  /// The tables, at least one. `[name.x]` and keys belong to the last one.
  package var tables: [TOMLTable]

  /// Creates an array of one table.
  init(_ first: TOMLTable) { tables = [first] }
}
