package import Platform
import Serving

extension ApplianceConfiguration {
  /// Reads the whole configuration: command line, environment and file.
  ///
  /// - Parameters:
  ///   - arguments: the arguments after `nightjar stream`.
  ///   - environment: all variables.
  ///   - checkSyntax: throws where the arguments are not in the syntax of the command line. A mistake in the file is
  ///     told before.
  /// - Throws: ``ConfigurationError`` for mistakes in file or environment, ``CommandLineError``, the errors of
  ///   `checkSyntax`.
  package static func load(
    arguments: [String], environment: [String: String], checkSyntax: ([String]) throws -> Void
  ) throws -> ApplianceConfiguration {
    var faults = ConfigurationFaults()
    let configuration = try read(
      arguments: arguments, environment: environment, faults: &faults, checkSyntax: checkSyntax)
    if let first = faults.errors.first { throw first }
    return configuration
  }

  /// Reads the whole configuration as far as possible, and notes the mistakes of file and environment.
  ///
  /// - Throws: the errors of ``load(arguments:environment:checkSyntax:)``, if nothing can be read.
  package static func read(
    arguments: [String], environment: [String: String], faults: inout ConfigurationFaults,
    checkSyntax: ([String]) throws -> Void
  ) throws -> ApplianceConfiguration {
    let options = OptionTable.stream
    let words = CommandLineWords(arguments)
    let path = path(words, environment)
    let file = try path.map { try ConfigurationFile(contentsOf: $0, options: options, faults: &faults) }
    let variables: EnvironmentSettings
    do {
      variables = try EnvironmentSettings(environment, options: options, others: [pathVariable])
    } catch { throw faults.errors.first ?? error }
    let merge = ConfigurationMerge(
      file: file, environment: variables.settings, given: words.given, options: options, faults: &faults)
    do { try checkSyntax(arguments) } catch { throw faults.errors.first ?? error }
    var reading = SettingsReading(merge.cameras, words: words, lost: faults.lost)
    var configuration = reading.configuration()
    if let error = reading.commandLineError { throw faults.errors.first ?? reading.errors.first?.error ?? error }
    for (error, lost) in reading.errors { faults.add(error, lost: lost) }
    configuration.path = path
    configuration.warnings =
      variables.warnings + relativePaths(merge.cameras) + configuration.events.outputs.mqtt.warnings
      + missingPictures(configuration)
    configuration.overridden = merge.overridden
    CameraSet(configuration, lines: merge.cameras.map(\.line)).check(&faults)
    CameraSet.omitSoundsInTheWay(of: &configuration.cameras)
    return configuration
  }

  /// Returns a line for each path that is relative to the program's working directory.
  private static func relativePaths(_ cameras: [ConfigurationMerge.Camera]) -> [String] {
    var lines: [String] = []
    for setting in cameras.flatMap(\.settings.values) {
      guard case .file = setting.origin, let text = setting.text else { continue }
      let clip = setting.option.name == "source" && text.hasPrefix("file:") ? String(text.dropFirst(5)) : nil
      guard let path = clip ?? (pathOptions.contains(setting.option.name) ? text : nil) else { continue }
      guard !path.hasPrefix("/"), !["", "-", "none"].contains(path) else { continue }
      let line =
        "\(setting.origin): \(setting.option.name): \(path) is relative to the directory that nightjar starts in; write the "
        + "absolute path"
      if !lines.contains(line) { lines.append(line) }
    }
    return lines.sorted()
  }

  /// Returns a line for each camera of whose alerts there are no pictures, though the settings ask for them.
  private static func missingPictures(_ configuration: ApplianceConfiguration) -> [String] {
    let events = configuration.events
    guard events.takesPictures || events.outputs.mqtt.sent(events.takesPictures) != .none else { return [] }
    return configuration.cameras.filter { $0.passesThrough && $0.detection.isOn }.map { camera in
      "camera \(camera.name): its alerts have no pictures while its own H.264 is passed on, because nightjar decodes none; "
        + "--no-event-pictures asks for none, and --encoder auto takes them"
    }
  }

  private static let pathOptions: Set = [
    "control", "users", "tokens", "tls-cert", "tls-key", "sdp", "stats-json", "trace", "webhook-key", "mqtt-ca",
    "mqtt-login",
  ]

  /// The variable that names the file.
  package static let pathVariable = "NIGHTJAR_CONFIG"

  /// Returns the path of the file to read: the named one, otherwise the default one if it exists.
  package static func path(_ words: CommandLineWords, _ environment: [String: String]) -> String? {
    if let named = words.configuration ?? environment[pathVariable].flatMap({ $0.isEmpty ? nil : $0 }) {
      return named == "none" ? nil : named
    }
    let usual = StandardPaths.configurationFile
    return ConfigurationFile.mayExist(usual) ? usual : nil
  }
}

/// An error of the options of a command line.
package struct CommandLineError: Failure {
  package let kind = FailureKind.usage
  package let description: String

  package init(description: String) { self.description = description }
}

/// The settings on their way from words to types, and what is wrong with them.
private struct SettingsReading {
  private let cameras: [ConfigurationMerge.Camera]
  private let words: CommandLineWords
  /// The options whose value is unknown.
  private var lost: Set<String>
  /// The faults of settings in file and environment, and the cameras for which they are wrong.
  private var found: [(setting: OptionSetting, fault: SettingFault, cameras: [Int])] = []
  /// The first error of the command line.
  private(set) var commandLineError: CommandLineError?

  init(_ cameras: [ConfigurationMerge.Camera], words: CommandLineWords, lost: Set<String>) {
    (self.cameras, self.words, self.lost) = (cameras, words, lost)
  }

  /// Returns the configuration without the values that are wrong.
  mutating func configuration() -> ApplianceConfiguration {
    var configuration = ApplianceConfiguration()
    configuration.options = layer(of: 0)
    var faults = SettingFaults()
    configuration.fill(from: configuration.options) { faults.add($0) }
    lost = note(faults, camera: nil, beside: lost)
    faults = SettingFaults()
    configuration.check(&faults)
    lost = note(faults, camera: nil, beside: lost)
    for index in cameras.indices {
      var camera = CameraConfiguration()
      camera.options = layer(of: index)
      var lost = lost
      var faults = SettingFaults()
      camera.fill(from: camera.options) { faults.add($0) }
      lost = note(faults, camera: index, beside: lost)
      faults = SettingFaults()
      camera.check(in: configuration, &faults)
      lost = note(faults, camera: index, beside: lost)
      configuration.cameras.append(camera)
    }
    return configuration
  }

  private func layer(of index: Int) -> OptionLayer {
    cameras[index].settings.merging(words.layer) { $1 }
  }

  /// Notes faults, each at the first of its settings that stands in file or environment. A fault that involves an
  /// option whose value is unknown may be a consequence.
  ///
  /// - Returns: the options whose value is unknown now.
  private mutating func note(_ faults: SettingFaults, camera: Int?, beside lost: Set<String>) -> Set<String> {
    var lost = lost
    for fault in faults.faults where lost.isDisjoint(with: fault.options) {
      let settings = cameras[camera ?? 0].settings
      guard let setting = fault.options.lazy.compactMap({ settings[$0] }).first else {
        if commandLineError == nil { commandLineError = CommandLineError(description: fault.commandLineText) }
        lost.formUnion(fault.options.prefix(1))
        continue
      }
      lost.insert(setting.option.name)
      let whose = camera.map { [$0] } ?? Array(cameras.indices)
      if let index = found.firstIndex(where: { $0.setting == setting && $0.fault == fault }) {
        found[index].cameras += whose
      } else {
        found.append((setting, fault, whose))
      }
    }
    return lost
  }

  /// The errors of file and environment, and the options that each makes unknown.
  var errors: [(error: ConfigurationError, lost: Set<String>)] {
    found.map { setting, fault, failing in
      let name = setting.option.name
      let having = cameras.indices.filter { cameras[$0].settings[name] == setting }
      // A setting that is wrong for all cameras that have it is wrong in itself.
      let whose = cameras.count > 1 && Set(failing) != Set(having) ? failing.first.map { cameras[$0] } : nil
      let reason = fault.text(given: words.given)
      switch setting.origin {
      case .file(_, let line):
        // A setting above the tables may be right for the other cameras.
        let other =
          if let whose, let name = whose.settings["name"]?.text, let first = whose.line, line < first {
            "; that is camera '\(name)': write it into the tables of the others"
          } else { "" }
        return (ConfigurationError(at: "\(setting.origin)", key: name, reason + other), [name])
      case .environment, .commandLine:
        return (ConfigurationError(.usage, at: "\(setting.origin)", reason), [name])
      }
    }
  }
}
