import Media
import RTSPServer
import Settings
import Streaming

/// The cameras of one box, which must not be in each other's way.
struct CameraSet {
  let path: String?
  /// The lines of their `[[camera]]`; nil where the file has none.
  let lines: [Int?]
  let settings: [OptionLayer]
  let cameras: [StreamCommand]

  /// Notes what is in another's way, with the place of the second of two that want the same.
  func check(_ faults: inout ConfigurationFaults) {
    guard cameras.count > 1, !faults.lacksTables else { return }
    checkDistinct("name", "give each camera a name of its own", cameras.map { [$0.name] }, &faults)
    checkSources(&faults)
    checkDistinct(
      "to", "another camera goes there already", cameras.map { $0.destinations.map { "\($0.host) port \($0.port)" } },
      &faults)
    checkDistinct("sdp", "another camera's is written there", cameras.map { $0.sdp.map { [$0] } ?? [] }, &faults)
    checkGroups(&faults)
    for (index, camera) in cameras.enumerated() where camera.sdp != nil && camera.sdp == camera.statisticsPath {
      faults.add(ConfigurationError(at: place(of: "sdp", index), key: "sdp", "it is the file of stats-json"))
    }
    for (index, camera) in cameras.enumerated() where camera.sdp != nil && camera.sdp == camera.tracing.path {
      faults.add(ConfigurationError(at: place(of: "sdp", index), key: "sdp", "it is the file of trace"))
    }
    checkDistinct(
      "rtsp-multicast", "another camera goes to this group",
      cameras.map { $0.serving.group.map { ["\($0.address) port \($0.port)"] } ?? [] }, &faults)
    guard faults.lost.isDisjoint(with: ["to", "rtsp", "rtsps"]) else { return }
    for (index, camera) in cameras.enumerated() where camera.destinations.isEmpty && !camera.serving.isServed {
      faults.add(
        ConfigurationError(
          at: place(of: "to", index),
          "\(camera.name) goes nowhere: give it a to, or write rtsp = true above the cameras"))
    }
  }

  /// What goes to a group on purpose would be another camera's picture among the packets of the one that is served there.
  private func checkGroups(_ faults: inout ConfigurationFaults) {
    for camera in cameras {
      guard let group = camera.serving.group else { continue }
      let taken = [group.port, group.port + 1]
      for (index, other) in cameras.enumerated() {
        for destination in other.destinations
        where destination.host == group.address
          && taken.contains(where: { $0 == destination.port || $0 == destination.port + 1 })
        {
          faults.add(
            ConfigurationError(
              at: place(of: "to", index), key: "to",
              "'\(destination.host) port \(destination.port)' is the rtsp-multicast of camera '\(camera.name)'"))
        }
      }
    }
  }

  private func checkSources(_ faults: inout ConfigurationFaults) {
    guard !faults.lost.contains("source") else { return }
    for (index, camera) in cameras.enumerated() where camera.source == .auto {
      faults.add(
        ConfigurationError(
          at: place(of: "source", index), key: "source",
          "camera '\(camera.name)' has none; of several each needs its own, as in source = \"/dev/v4l/by-id/…\"; see "
            + "nightjar devices"))
    }
    checkDistinct(
      "source", "another camera has it already",
      cameras.map { camera in
        if case .device(let path) = camera.source { return [path] }
        return []
      }, &faults)
  }

  private func checkDistinct(
    _ option: String, _ mend: String, _ values: [[String]], _ faults: inout ConfigurationFaults
  ) {
    guard !faults.lost.contains(option) else { return }
    var taken: Set<String> = []
    for (index, values) in values.enumerated() {
      for value in values where taken.contains(value) {
        faults.add(ConfigurationError(at: place(of: option, index), key: option, "'\(value)': \(mend)"))
      }
      taken.formUnion(values)
    }
  }

  /// Where a camera says it, else where the camera stands.
  private func place(of option: String, _ index: Int) -> String {
    if let setting = settings[index][option] { return "\(setting.origin)" }
    return [path, lines[index].map(String.init)].compactMap { $0 }.joined(separator: ":")
  }
}
