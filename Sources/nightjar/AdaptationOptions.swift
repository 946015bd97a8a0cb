import ArgumentParser
import Media
import ThermalSensing

/// What is done with less of where the machine is too hot or too slow.
struct AdaptationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "When the machine counts as hot: auto, off, or three temperatures in degrees Celsius, as in 65,75,85.",
      discussion: """
        From the first on it is fair, from the second serious: 30 % less bitrate; from the third critical: 1280x720 at \
        25 frames a second too. auto goes by the kernel's trip points.
        """, valueName: "temperatures"),
    transform: ThermalChoice.init(text:))
  var thermal = ThermalChoice.auto

  @Flag(
    name: .customLong("load-adaptation"), inversion: .prefixedNo,
    help: ArgumentHelp(
      "Encode with less effort, then fewer frames, then smaller pictures, while encoding takes over 80 % of the time."))
  var followsLoad = true
}

/// What `--thermal` takes.
enum ThermalChoice: Equatable, Sendable {
  /// As the zones' trip points say.
  case auto
  /// Not at all.
  case off
  /// For all zones.
  case thresholds(ThermalThresholds)

  init(text: String) throws {
    switch text {
    case "auto": self = .auto
    case "off": self = .off
    default:
      let values = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
      guard values.count == 3, let fair = values[0], let serious = values[1], let critical = values[2],
        let thresholds = ThermalThresholds(fair: fair, serious: serious, critical: critical)
      else { throw ValidationError("choose auto, off, or three rising temperatures from -40 to 150, as in 65,75,85") }
      self = .thresholds(thresholds)
    }
  }
}
