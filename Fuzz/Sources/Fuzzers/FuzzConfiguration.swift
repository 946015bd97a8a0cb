import Configuration

/// Any bytes as a configuration file: what is read is written, and read the same again.
enum FuzzConfiguration {
  static let options = OptionTable([
    .init("rtsp", .optionalText, .appliance), .init("users", .text, .appliance),
    .init("name", .text, .camera(isShared: false)),
    .init("source", .text, .camera(isShared: false)), .init("wait", .flag, .camera(isShared: true)),
    .init("load-adaptation", .invertibleFlag, .camera(isShared: true)),
    .init("slices", .integer, .camera(isShared: true)),
    .init("fps", .number, .camera(isShared: true)), .init("to", .list, .camera(isShared: false)),
    .init("controls", .table, .camera(isShared: true)), .init("night-controls", .table, .camera(isShared: true)),
  ])

  static func take(_ bytes: [UInt8]) {
    var faults = ConfigurationFaults()
    _ = ConfigurationFile(parsing: bytes, path: "f", options: options, faults: &faults)
    do throws(ConfigurationError) {
      let file = try ConfigurationFile(parsing: bytes, path: "f", options: options)
      let written = text(file)
      let again = try? ConfigurationFile(parsing: Array(written.utf8), path: "f", options: options)
      precondition(faults.errors.isEmpty, "a mistake in what is read")
      precondition(again.map(text) == written, "a file that is read otherwise than written")
      _ = ConfigurationMerge(file: file, environment: [:], given: [], options: options, faults: &faults)
      _ = try ConfigurationMerge(file: file, environment: [:], given: [], options: options)
    } catch {
      precondition(faults.errors.contains(error), "a mistake that is found only once")
      precondition(error.description.hasPrefix("f") && !error.description.utf8.contains { $0 < 0x20 })
    }
  }

  private static func text(_ file: ConfigurationFile) -> String {
    let layers = [file.settings] + file.cameras.map(\.settings)
    return layers.map { layer in
      options.options.compactMap { layer[$0.name].map { "\($0.line)\n" } }.joined()
    }.joined(separator: "[[camera]]\n")
  }
}
