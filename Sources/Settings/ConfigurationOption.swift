import Media

/// An option of the program, as files and the environment know it.
public struct ConfigurationOption: Hashable, Sendable {
  /// What it takes.
  public enum Kind: Hashable, Sendable {
    /// Nothing: it is there or not. In a file true or false.
    case flag
    /// Nothing, and `--no-NAME` says the opposite. In a file true or false.
    case invertibleFlag
    /// A text.
    case text
    /// A text that may be a whole number.
    case integer
    /// A text that may be a number.
    case number
    /// Texts, each as an option of its own. In a file an array, or one text.
    case list
    /// Texts `NAME=VALUE`, each as an option of its own. In a file a table, `night-controls` being `[night.controls]`, or as
    /// ``list``.
    case table
    /// Nothing, or a text. In a file true, false, a text, or a whole number.
    case optionalText
  }

  /// Whose it is.
  public enum Scope: Hashable, Sendable {
    /// The process's, whatever cameras it has.
    case box
    /// Each camera's. Where `isShared` is false, two cameras cannot have the same value.
    case camera(isShared: Bool)
  }

  /// The long name without the dashes, which is the key in a file.
  public let name: String
  /// What it takes.
  public let kind: Kind
  /// Whose it is.
  public let scope: Scope

  /// The option `name`.
  public init(_ name: String, _ kind: Kind, _ scope: Scope) {
    self.name = name
    self.kind = kind
    self.scope = scope
  }

  /// The variable of the environment: `keyframe-interval` is `NIGHTJAR_KEYFRAME_INTERVAL`.
  public var variable: String {
    OptionTable.variablePrefix + name.uppercased().split(separator: "-").joined(separator: "_")
  }
}

/// All options that a file may have.
public struct OptionTable: Sendable {
  /// What the variables of the environment begin with.
  public static let variablePrefix = "NIGHTJAR_"

  /// In the order in which they are shown.
  public let options: [ConfigurationOption]
  private let indices: [String: Int]

  /// - Precondition: no two have the same name.
  public init(_ options: [ConfigurationOption]) {
    self.options = options
    indices = Dictionary(uniqueKeysWithValues: options.enumerated().map { ($1.name, $0) })
  }

  /// The names of those that may be tables in a file.
  var tables: [String] { options.filter { $0.kind == .table }.map(\.name) }

  /// The option of that name.
  public subscript(name: String) -> ConfigurationOption? { indices[name].map { options[$0] } }

  /// The option whose name is the least different from `name`, and by how many letters; upper and lower case are the same,
  /// and so are `_` and `-`. nil where there is no option.
  public func nearest(to name: String) -> (option: ConfigurationOption, distance: Int)? {
    let letters = Self.folded(name)
    return options.map { ($0, EditDistance.between(letters, Array($0.name.utf8))) }.min { $0.1 < $1.1 }
  }

  private static func folded(_ name: String) -> [UInt8] {
    // Longer than any option's; what is behind it makes no name nearer than another.
    name.utf8.prefix(64).map { byte in
      switch byte {
      case UInt8(ascii: "_"): UInt8(ascii: "-")
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
      default: byte
      }
    }
  }
}
