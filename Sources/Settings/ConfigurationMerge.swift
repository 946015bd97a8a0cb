import Media

/// What file, environment and command line say together: the command line before the environment before the file, and in the
/// file a camera's table before what stands above it. It goes option by option: who gives one destination gives them all.
public struct ConfigurationMerge: Sendable {
  /// A camera, with the box's options.
  public struct Camera: Sendable {
    /// Of its `[[camera]]`; nil where the file has none.
    public let line: Int?
    /// What file and environment say, without what the command line says otherwise.
    public let settings: OptionLayer
  }

  /// One at least.
  public let cameras: [Camera]
  /// What file and environment say of options that the command line has: it goes before them.
  public let overridden: Set<OptionSetting>

  /// - Parameters:
  ///   - given: the options of the command line, by name.
  /// - Throws: ``ConfigurationError`` where several cameras would have the same of what only one can have.
  public init(
    file: ConfigurationFile?, environment: OptionLayer, given: Set<String>, options: OptionTable
  ) throws(ConfigurationError) {
    var faults = ConfigurationFaults(limit: 1)
    self.init(file: file, environment: environment, given: given, options: options, faults: &faults)
    if let first = faults.errors.first { throw first }
  }

  /// - Parameters:
  ///   - given: the options of the command line, by name.
  ///   - faults: where it is noted that several cameras would have the same of what only one can have.
  public init(
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
        "each [[camera]] has its own, so this is nobody's; for one more camera write one more [[camera]]")
    case 1: return
    case let count:
      throw ConfigurationError(
        at: "\(common.origin)", key: option.name,
        "it cannot be the same for \(count) cameras; write it into each [[camera]]")
    }
  }
}

/// The words of a command line, as far as a configuration has to know them.
public struct CommandLineWords: Sendable {
  /// The options that are given, by name.
  public let given: Set<String>
  /// What `--config` says; of several the last.
  public let configuration: String?

  /// - Parameter words: without the program and the command.
  public init(_ words: [String], options: OptionTable) {
    var given: Set<String> = []
    var configuration: String?
    for (index, word) in words.enumerated() {
      if word == "--" { break }
      guard word.hasPrefix("--") else { continue }
      let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      if name == "config" {
        // What begins with a dash is no value, as the parser of the command line sees it too.
        let next = index + 1 < words.count && !words[index + 1].hasPrefix("-") ? words[index + 1] : nil
        configuration = parts.count > 1 ? String(parts[1]) : next ?? configuration
      }
      if name.hasPrefix("no-"), let option = options[String(name.dropFirst(3))], option.kind == .invertibleFlag {
        given.insert(option.name)
      } else {
        given.insert(name)
      }
    }
    self.given = given
    self.configuration = configuration
  }
}
