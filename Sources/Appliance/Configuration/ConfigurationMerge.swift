import Platform

/// The combination of file, environment and command line. The command line takes precedence over the environment, and
/// the environment over the file. In the file, a camera's table takes precedence over the options above it. Precedence
/// applies to each option as a whole: a place that gives one destination replaces all of them.
package struct ConfigurationMerge: Sendable {
  /// A camera's options, including the appliance's.
  package struct Camera: Sendable {
    /// The line of the camera's `[[camera]]`; nil where the file has none.
    package let line: Int?
    /// The options from file and environment that the command line does not override.
    package let settings: OptionLayer
  }

  /// The cameras, at least one.
  package let cameras: [Camera]
  /// The settings from file and environment that the command line overrides.
  package let overridden: Set<OptionSetting>

  /// - Parameters:
  ///   - given: the options of the command line, by name.
  /// - Throws: ``ConfigurationError`` where several cameras have the same value of an option that cannot be shared.
  package init(
    file: ConfigurationFile?, environment: OptionLayer, given: Set<String>, options: OptionTable
  ) throws(ConfigurationError) {
    var faults = ConfigurationFaults(limit: 1)
    self.init(file: file, environment: environment, given: given, options: options, faults: &faults)
    if let first = faults.errors.first { throw first }
  }

  /// - Parameters:
  ///   - given: the options of the command line, by name.
  ///   - faults: receives an error where several cameras have the same value of an option that cannot be shared.
  package init(
    file: ConfigurationFile?, environment: OptionLayer, given: Set<String>, options: OptionTable,
    faults: inout ConfigurationFaults
  ) {
    let common = file?.settings ?? [:]
    let tables = file?.cameras ?? []
    for option in options.options
    where option.scope == .camera(isShared: false) && !tables.isEmpty && !faults.lacksTables {
      do throws(ConfigurationError) {
        try Self.check(option, common[option.name], environment[option.name], given, tables)
      } catch {
        faults.add(error, lost: [option.name])
      }
    }
    func merged(_ table: OptionLayer) -> OptionLayer {
      common.merging(table) { $1 }.merging(environment) { $1 }.filter { !given.contains($0.key) }
    }
    overridden = Set(
      ([common, environment] + tables.map(\.settings)).flatMap(\.values).filter { given.contains($0.option.name) })
    cameras =
      tables.isEmpty
      ? [Camera(line: nil, settings: merged([:]))]
      : tables.map { Camera(line: $0.line, settings: merged($0.settings)) }
  }

  private static func check(
    _ option: ConfigurationOption, _ common: OptionSetting?, _ environment: OptionSetting?, _ given: Set<String>,
    _ tables: [ConfigurationFile.Camera]
  ) throws(ConfigurationError) {
    if tables.count > 1 {
      let reason = "it cannot be the same for \(tables.count) cameras; write it into each [[camera]] of the file"
      if given.contains(option.name) { throw ConfigurationError(.usage, at: "--\(option.name)", reason) }
      if let environment { throw ConfigurationError(.usage, at: "\(environment.origin)", reason) }
    }
    guard let common else { return }
    switch tables.count(where: { $0.settings[option.name] == nil }) {
    case 0:
      throw ConfigurationError(
        at: "\(common.origin)", key: option.name,
        "each [[camera]] has its own, so this applies to none; for another camera add a [[camera]]")
    case 1: return
    case let count:
      throw ConfigurationError(
        at: "\(common.origin)", key: option.name,
        "it cannot be the same for \(count) cameras; write it into each [[camera]]")
    }
  }
}
