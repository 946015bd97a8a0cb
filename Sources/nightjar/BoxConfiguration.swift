import ArgumentParser
import Credentials
import Media
import Settings

/// What `nightjar stream` is to do, by its command line, the environment and the configuration file.
struct BoxConfiguration {
  /// The cameras, one at least. What is the box's is the same in all of them.
  let cameras: [StreamCommand]
  /// The file that was read, if any.
  let path: String?
  /// A line for each thing that looks like a mistake and is none that would keep it from running.
  let warnings: [String]
  /// What file and environment say although the command line goes before it.
  let overridden: Set<OptionSetting>
  /// What file and environment say of each camera, in the same order.
  let settings: [OptionLayer]

  /// What is the box's, not a camera's.
  var box: StreamCommand { cameras[0] }

  /// Reads everything anew.
  ///
  /// - Parameters:
  ///   - arguments: what follows `nightjar stream`.
  ///   - environment: all variables.
  /// - Throws: ``ConfigurationError`` for what file or environment say, else what the parser of the command line throws.
  static func load(arguments: [String], environment: [String: String]) throws -> BoxConfiguration {
    var faults = ConfigurationFaults()
    let box = try read(arguments: arguments, environment: environment, faults: &faults)
    if let first = faults.errors.first { throw first }
    return box
  }

  /// Reads everything anew, as far as it can be understood, and notes the mistakes of file and environment.
  ///
  /// - Throws: as ``load(arguments:environment:)``, where nothing can be understood.
  static func read(
    arguments: [String], environment: [String: String], faults: inout ConfigurationFaults
  ) throws -> BoxConfiguration {
    let options = StreamCommand.optionTable
    let words = CommandLineWords(arguments, options: options)
    let path = path(words, environment)
    let file = try path.map { try ConfigurationFile(contentsOf: $0, options: options, faults: &faults) }
    let variables: EnvironmentSettings
    do {
      variables = try EnvironmentSettings(environment, options: options, others: [pathVariable])
    } catch { throw faults.errors.first ?? error }
    let merge = ConfigurationMerge(
      file: file, environment: variables.settings, given: words.given, options: options, faults: &faults)
    let merged = merge.cameras
    let cameras = try OptionFault.commands(of: merged, arguments, given: words.given, &faults)
    CameraSet(path: path, lines: merged.map(\.line), settings: merged.map(\.settings), cameras: cameras).check(&faults)
    return BoxConfiguration(
      cameras: cameras, path: path,
      warnings: variables.warnings + Self.relativePaths(merged), overridden: merge.overridden,
      settings: merged.map(\.settings))
  }

  /// A line for each file that is looked for where the program happens to be started.
  private static func relativePaths(_ cameras: [ConfigurationMerge.Camera]) -> [String] {
    var lines: [String] = []
    for setting in cameras.flatMap(\.settings.values) {
      guard case .file = setting.origin, let text = setting.text else { continue }
      let clip = setting.option.name == "source" && text.hasPrefix("file:") ? String(text.dropFirst(5)) : nil
      guard let path = clip ?? (pathOptions.contains(setting.option.name) ? text : nil) else { continue }
      guard !path.hasPrefix("/"), !["", "-", "none"].contains(path) else { continue }
      let line =
        "\(setting.origin): \(setting.option.name): \(path) is looked for where nightjar is started; write all of "
        + "its path, from / on"
      if !lines.contains(line) { lines.append(line) }
    }
    return lines.sorted()
  }

  private static let pathOptions: Set = [
    "control", "users", "tokens", "tls-cert", "tls-key", "sdp", "stats-json", "trace",
  ]

  /// The variable that names the file.
  static let pathVariable = "NIGHTJAR_CONFIG"

  /// The file to read: the one that is named, else the usual one where it is there.
  static func path(_ words: CommandLineWords, _ environment: [String: String]) -> String? {
    if let named = words.configuration ?? environment[pathVariable].flatMap({ $0.isEmpty ? nil : $0 }) {
      return named == "none" ? nil : named
    }
    let usual = StandardPaths.configurationFile
    return ConfigurationFile.mayExist(usual) ? usual : nil
  }
}

extension StreamCommand {
  /// - Parameter words: what follows `nightjar stream`.
  /// - Throws: what ArgumentParser throws.
  static func parsed(_ words: [String]) throws -> StreamCommand {
    let words = try [configuration.commandName ?? "stream"] + words.flatMap(separated)
    guard let command = try Nightjar.parseAsRoot(words) as? StreamCommand else {
      throw CleanExit.helpRequest(StreamCommand.self)
    }
    return command
  }

  /// `--rtsp=8555` as two words. Of an option that may stand without a value, ArgumentParser 1.8 takes what is behind the
  /// equals sign only where nothing follows, and otherwise forgets it without a word.
  private static func separated(_ word: String) throws -> [String] {
    guard word.hasPrefix("--"), let sign = word.firstIndex(of: "="),
      let option = optionTable[String(word[..<sign].dropFirst(2))], option.kind == .optionalText
    else { return [word] }
    let value = String(word[word.index(after: sign)...])
    guard !value.hasPrefix("-") else { throw ValidationError("--\(option.name) \(value): \(ListenAddress.rule)") }
    return ["--\(option.name)", value]
  }
}

extension OptionLayer {
  /// The words of the command line that say the same.
  func words(of options: OptionTable) -> [String] {
    options.options.flatMap { self[$0.name]?.words ?? [] }
  }
}

/// What the parser of the command line says of an option, as a line that tells where that stands.
struct OptionFault {
  /// What is wrong, or has nothing to go with.
  let setting: OptionSetting
  /// What is wrong with it.
  let reason: String
  /// The options that have to do with it.
  let names: Set<String>

  /// - Parameter given: the options of the command line.
  /// - Returns: nil where it is none of file or environment that is wrong.
  private init?(_ error: any Error, settings: OptionLayer, given: Set<String>) {
    let message = Nightjar.message(for: error)
    let names = Self.optionNames(in: message)
    for name in names {
      guard let setting = settings[name] ?? (name.hasPrefix("no-") ? settings[String(name.dropFirst(3))] : nil) else {
        continue
      }
      (self.setting, self.names) = (setting, Set(names))
      reason = Self.reason(message, about: name, given: given)
      return
    }
    return nil
  }

  /// What the cameras are to do, each without the options that are wrong, which are noted.
  ///
  /// - Throws: what the parser throws where the command line itself is wrong.
  static func commands(
    of cameras: [ConfigurationMerge.Camera], _ arguments: [String], given: Set<String>,
    _ faults: inout ConfigurationFaults
  ) throws -> [StreamCommand] {
    var found: [(camera: Int, fault: OptionFault)] = []
    let known = faults.lost
    let commands = try cameras.enumerated().map { index, camera in
      var settings = camera.settings
      var lost = known
      while true {
        do {
          return try StreamCommand.parsed(settings.words(of: StreamCommand.optionTable) + arguments)
        } catch {
          guard let fault = OptionFault(error, settings: settings, given: given) else {
            throw faults.errors.first ?? found.first.map { $0.fault.error(of: nil) } ?? error
          }
          // Whether it fits what is not known, nobody can say.
          if fault.names.isDisjoint(with: lost) { found.append((index, fault)) }
          lost.insert(fault.setting.option.name)
          settings[fault.setting.option.name] = nil
        }
      }
    }
    for (index, fault) in found {
      let having = cameras.indices.filter { cameras[$0].settings[fault.setting.option.name] == fault.setting }
      let failing = found.filter { $0.fault.setting == fault.setting }.map(\.camera)
      // What is wrong for all that have it is wrong in itself.
      let whose = cameras.count > 1 && Set(failing) != Set(having) ? cameras[index] : nil
      faults.add(fault.error(of: whose), lost: [fault.setting.option.name])
    }
    return commands
  }

  /// The line.
  ///
  /// - Parameter camera: the one of several for which it is wrong; nil where it is for all.
  private func error(of camera: ConfigurationMerge.Camera?) -> ConfigurationError {
    switch setting.origin {
    case .file(_, let line):
      // What stands above the tables may be right for the others.
      let whose =
        if let camera, let name = camera.settings["name"]?.text, let first = camera.line, line < first {
          "; that is camera '\(name)': write it into the tables of the others"
        } else { "" }
      return ConfigurationError(at: "\(setting.origin)", key: setting.option.name, reason + whose)
    case .environment: return ConfigurationError(.usage, at: "\(setting.origin)", reason)
    }
  }

  /// The options that a message names, in its order.
  private static func optionNames(in message: String) -> [String] {
    message.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-")) }
      .compactMap { $0.hasPrefix("--") ? String($0.dropFirst(2)) : nil }
  }

  /// "The value 'x' is invalid for '--fps <rate>': choose …", and the like, without what the place tells.
  private static func reason(_ message: String, about name: String, given: Set<String>) -> String {
    if message.hasPrefix("Missing value for") { return "there is nothing in it; write a value, or leave it out" }
    let opening = "The value '"
    if message.hasPrefix("--\(name) "), message.hasSuffix(ListenAddress.rule) {
      return String(message.dropFirst(name.utf8.count + 3))
    }
    guard message.hasPrefix(opening), let middle = message.firstRange(of: "' is invalid for '--\(name)") else {
      let own = "--\(name): "
      return bare(message.hasPrefix(own) ? String(message.dropFirst(own.count)) : message, given: given)
    }
    let value = message[..<middle.lowerBound].dropFirst(opening.count)
    let rest = message[middle.upperBound...].drop { $0 != "'" }.dropFirst(3)
    var choice = String(rest).replacing("Please provide one of", with: "choose one of")
    // A sentence of the parser's; ours go on behind it.
    if choice.hasSuffix(".") { choice.removeLast() }
    return "'\(value)': \(choice.isEmpty ? "it does not take this" : bare(choice, given: given))"
  }

  /// Options as a file writes them, but for those that stand in the command line.
  private static func bare(_ text: String, given: Set<String>) -> String {
    optionNames(in: text).filter { !given.contains($0) }.reduce(text) { text, name in
      text.replacing("--\(name)", with: name, maxReplacements: 1)
    }
  }
}
