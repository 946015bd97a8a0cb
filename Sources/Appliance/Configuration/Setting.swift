/// One setting of a configuration: an option, whose value is text, and the typed property for that value.
package struct Setting<Configuration: SettingsConfiguration>: Sendable {
  typealias Property<Value> = any WritableKeyPath<Configuration, Value> & Sendable

  package let name: Configuration.SettingName
  package let option: ConfigurationOption
  /// Puts an option's value into the property.
  let fill: @Sendable (OptionSetting.Value, inout Configuration) throws(SettingFault) -> Void
  /// Returns `true` if the property differs.
  let differs: @Sendable (Configuration, Configuration) -> Bool
  /// Gives the property the value that it has in another configuration.
  let copy: @Sendable (Configuration, inout Configuration) -> Void
}

/// A configuration that is made of settings.
package protocol SettingsConfiguration: Sendable {
  associatedtype SettingName: RawRepresentable<String>, Hashable, Sendable
  static var settings: [Setting<Self>] { get }
}

extension SettingsConfiguration {
  /// Puts the values of `layer` into the properties. Calls `report` for each value that is wrong.
  package mutating func fill(from layer: OptionLayer, report: (SettingFault) -> Void) {
    for setting in Self.settings {
      guard let given = layer[setting.option.name] else { continue }
      do throws(SettingFault) { try setting.fill(given.value, &self) } catch { report(error) }
    }
  }

  /// Returns the settings whose values differ from those of `old`.
  func changedSettings(from old: Self) -> Set<SettingName> {
    Set(Self.settings.lazy.filter { $0.differs(self, old) }.map(\.name))
  }
}

extension Setting {
  /// A setting whose value is one text.
  static func text<Value: Equatable & SendableMetatype>(
    _ name: Configuration.SettingName, kind: ConfigurationOption.Kind = .text, _ scope: ConfigurationOption.Scope,
    _ property: Property<Value>, _ parse: @escaping @Sendable (String) throws(ValueError) -> Value
  ) -> Setting {
    Setting(name, kind, scope, property) { value throws(SettingFault) in
      guard let text = value.texts.last else { return nil }
      return try Self.parsed(text, of: name, parse)
    }
  }

  /// A setting that is a text as it stands.
  static func text(
    _ name: Configuration.SettingName, _ scope: ConfigurationOption.Scope, _ property: Property<String?>
  ) -> Setting {
    text(name, kind: .text, scope, property) { $0 }
  }

  /// A setting with several texts.
  static func list<Value: Equatable & SendableMetatype>(
    _ name: Configuration.SettingName, kind: ConfigurationOption.Kind = .list, _ scope: ConfigurationOption.Scope,
    _ property: Property<[Value]>, _ parse: @escaping @Sendable (String) throws(ValueError) -> Value
  ) -> Setting {
    Setting(name, kind, scope, property) { value throws(SettingFault) in
      var values: [Value] = []
      for text in value.texts { values.append(try Self.parsed(text, of: name, parse)) }
      return values
    }
  }

  /// A setting that is true or false.
  static func flag(
    _ name: Configuration.SettingName, kind: ConfigurationOption.Kind = .flag, _ scope: ConfigurationOption.Scope,
    _ property: Property<Bool>
  ) -> Setting {
    Setting(name, kind, scope, property) { $0.isSet }
  }

  /// A setting that is an address to listen at: true, false, or a text.
  static func address(_ name: Configuration.SettingName, _ property: Property<ListenAddress?>) -> Setting {
    Setting(name, .optionalText, .appliance, property) { value throws(SettingFault) in
      guard let text = value.texts.last else { return .some(value.isSet ? ListenAddress() : nil) }
      return try Self.parsed(text, of: name) { text throws(ValueError) in try ListenAddress(parsing: text) }
    }
  }

  private init<Value: Equatable & SendableMetatype>(
    _ name: Configuration.SettingName, _ kind: ConfigurationOption.Kind, _ scope: ConfigurationOption.Scope,
    _ property: Property<Value>, read: @escaping @Sendable (OptionSetting.Value) throws(SettingFault) -> Value?
  ) {
    self.name = name
    option = ConfigurationOption(name.rawValue, kind, scope)
    fill = { value, configuration throws(SettingFault) in
      if let read = try read(value) { configuration[keyPath: property] = read }
    }
    differs = { $0[keyPath: property] != $1[keyPath: property] }
    copy = { $1[keyPath: property] = $0[keyPath: property] }
  }

  private static func parsed<Value>(
    _ text: String, of name: Configuration.SettingName, _ parse: (String) throws(ValueError) -> Value
  ) throws(SettingFault) -> Value {
    guard !text.isEmpty else {
      throw SettingFault(subject: name.rawValue, reason: "it is empty; write a value, or leave it out")
    }
    do throws(ValueError) {
      return try parse(text)
    } catch {
      throw SettingFault(subject: name.rawValue, value: text, reason: error.reason)
    }
  }
}

extension OptionSetting.Value {
  /// The texts of the value; none for a flag.
  fileprivate var texts: [String] {
    switch self {
    case .flag: []
    case .text(let text), .number(let text): [text]
    case .list(let texts): texts
    }
  }

  /// `true` for a flag that is set.
  fileprivate var isSet: Bool { self == .flag(true) }
}
