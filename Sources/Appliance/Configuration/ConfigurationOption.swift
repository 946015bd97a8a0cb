import Platform

/// An option of the program, for files and the environment.
package struct ConfigurationOption: Hashable, Sendable {
  /// The kind of an option's value.
  package enum Kind: Hashable, Sendable {
    /// No value: the option is present or absent. True or false in a file.
    case flag
    /// No value, with `--no-NAME` for the opposite. True or false in a file.
    case invertibleFlag
    /// A text.
    case text
    /// A text that may be a whole number.
    case integer
    /// A text that may be a number.
    case number
    /// Texts, each given by a separate option. An array or one text in a file.
    case list
    /// Texts `NAME=VALUE`, each given by a separate option. In a file a table, where `night-controls` becomes
    /// `[night.controls]`, or the form of ``list``.
    case table
    /// No value, or a text. True, false, a text or a whole number in a file.
    case optionalText
  }

  /// The scope of an option.
  package enum Scope: Hashable, Sendable {
    /// The whole appliance, whatever cameras it has.
    case appliance
    /// Each camera. Where `isShared` is false, two cameras cannot have the same value.
    case camera(isShared: Bool)
    /// A camera, on the command line of a test alone.
    case tests
  }

  /// The long name without the dashes, which is the key in a file.
  package let name: String
  /// The kind of the option's value.
  package let kind: Kind
  /// The option's scope.
  package let scope: Scope

  /// Creates the option `name`.
  package init(_ name: String, _ kind: Kind, _ scope: Scope) {
    self.name = name
    self.kind = kind
    self.scope = scope
  }

  /// The environment variable: `NIGHTJAR_KEYFRAME_INTERVAL` for `keyframe-interval`.
  package var variable: String {
    OptionTable.variablePrefix + name.uppercased().split(separator: "-").joined(separator: "_")
  }
}

/// The table of all options that a file may have.
package struct OptionTable: Sendable {
  /// The prefix of the environment variables.
  package static let variablePrefix = "NIGHTJAR_"

  /// The options, in display order.
  package let options: [ConfigurationOption]
  private let indices: [String: Int]

  /// - Precondition: no two options have the same name.
  package init(_ options: [ConfigurationOption]) {
    self.options = options
    indices = Dictionary(uniqueKeysWithValues: options.enumerated().map { ($1.name, $0) })
  }

  /// The names of the options that may be tables in a file.
  var tables: [String] { options.filter { $0.kind == .table }.map(\.name) }

  /// Returns the option of that name.
  package subscript(name: String) -> ConfigurationOption? { indices[name].map { options[$0] } }

  /// Returns the option that was probably meant by `name`; nil if none is like it. Upper and lower case are equal, and
  /// so are `_` and `-`.
  package func nearest(to name: String) -> ConfigurationOption? {
    EditDistance.meant(by: Self.folded(name), among: options) { Array($0.name.utf8) }
  }

  private static func folded(_ name: String) -> [UInt8] {
    name.utf8.prefix(EditDistance.lettersLimit).map { byte in
      switch byte {
      case UInt8(ascii: "_"): UInt8(ascii: "-")
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
      default: byte
      }
    }
  }
}
