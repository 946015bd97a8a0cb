import Serving
import Streaming

/// The cameras of one appliance, which must not conflict with each other.
struct CameraSet {
  private let configuration: ApplianceConfiguration
  /// The lines of the cameras' `[[camera]]` tables; nil for a camera that has none.
  private let lines: [Int?]
  private var cameras: [CameraConfiguration] { configuration.cameras }

  init(_ configuration: ApplianceConfiguration, lines: [Int?]) {
    (self.configuration, self.lines) = (configuration, lines)
  }

  /// Notes the conflicts, each at the place of the second of two cameras.
  func check(_ faults: inout ConfigurationFaults) {
    guard cameras.count > 1, !faults.lacksTables else { return }
    checkDistinct("name", "give each camera its own name", cameras.map { [$0.name] }, &faults)
    checkSources(&faults)
    checkDistinct(
      "to", "another camera streams there already",
      cameras.map {
        $0.destinations.flatMap { destination in destination.requestedPorts.map { portName(destination.host, $0) } }
      },
      &faults)
    checkDistinct(
      "sdp", "another camera writes this file", cameras.map { $0.descriptionPath.map { [$0] } ?? [] }, &faults)
    checkGroups(&faults)
    for (index, camera) in cameras.enumerated()
    where camera.descriptionPath != nil && camera.descriptionPath == configuration.statisticsPath {
      faults.add(ConfigurationError(at: place(of: "sdp", index), key: "sdp", "stats-json writes this file"))
    }
    for (index, camera) in cameras.enumerated()
    where camera.descriptionPath != nil && camera.descriptionPath == configuration.tracePath {
      faults.add(ConfigurationError(at: place(of: "sdp", index), key: "sdp", "trace writes this file"))
    }
    guard faults.lost.isDisjoint(with: ["to", "rtsp", "rtsps"]) else { return }
    for (index, camera) in cameras.enumerated() where camera.destinations.isEmpty && !configuration.rtsp.isServed {
      faults.add(
        ConfigurationError(
          at: place(of: "to", index),
          "\(camera.name) has no destination: add to, or write rtsp = true above the cameras"))
    }
  }

  /// Notes the RTSP groups that share a port, and the destinations that are another camera's group: the packets of both
  /// would mix there.
  private func checkGroups(_ faults: inout ConfigurationFaults) {
    var groups: Set<String> = []
    for (index, camera) in cameras.enumerated() where !faults.lost.contains("rtsp-multicast") {
      if let taken = camera.placesOfGroup.first(where: groups.contains) {
        faults.add(
          ConfigurationError(
            at: place(of: "rtsp-multicast", index), key: "rtsp-multicast",
            "'\(taken)': another camera uses this group; a group has two ports for pictures and two for sound"))
      }
      groups.formUnion(camera.placesOfGroup)
    }
    guard faults.lost.isDisjoint(with: ["to", "rtsp-multicast"]) else { return }
    for camera in cameras {
      guard let group = camera.group else { continue }
      let taken = camera.portsOfGroup
      for (index, other) in cameras.enumerated() {
        for destination in other.destinations
        where destination.host == group.address
          && destination.requestedPorts.contains(where: { taken.contains($0) || taken.contains($0 &+ 1) })
        {
          faults.add(
            ConfigurationError(
              at: place(of: "to", index), key: "to",
              "'\(destination.host) port \(destination.port)' is the rtsp-multicast of camera '\(camera.name)'"))
        }
      }
    }
  }

  /// Sends no sound to a destination whose automatic port another camera uses.
  static func omitSoundsInTheWay(of cameras: inout [CameraConfiguration]) {
    let taken = cameras.map(\.requestedPlaces)
    for index in cameras.indices where cameras[index].sound.choice != .none {
      let others = Set(taken.enumerated().flatMap { $0.offset == index ? [] : $0.element })
      for number in cameras[index].destinations.indices {
        let destination = cameras[index].destinations[number]
        guard destination.soundPort == .automatic, !destination.payload.carriesSound,
          let port = destination.soundPort.number(beside: destination.port),
          destination.ports(from: port).contains(where: { others.contains(portName(destination.host, $0)) })
        else { continue }
        cameras[index].destinations[number].soundPort = .taken
      }
    }
  }

  private func checkSources(_ faults: inout ConfigurationFaults) {
    guard !faults.lost.contains("source") else { return }
    for (index, camera) in cameras.enumerated() where camera.source == .auto {
      faults.add(
        ConfigurationError(
          at: place(of: "source", index), key: "source",
          "camera '\(camera.name)' has none; each of several cameras needs one, as in source = \"/dev/v4l/by-id/…\"; see "
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

  /// Returns the place of the camera's option, otherwise the camera's own place.
  private func place(of option: String, _ index: Int) -> String {
    if let setting = cameras[index].options[option] { return "\(setting.origin)" }
    return [configuration.path, lines[index].map(String.init)].compactMap { $0 }.joined(separator: ":")
  }
}

extension CameraConfiguration {
  /// The ports of the RTSP group: two for each track.
  fileprivate var portsOfGroup: [UInt16] {
    guard let group else { return [] }
    return (0..<(sound.choice == .none ? 2 : 4)).map { group.port &+ $0 }
  }

  /// The places of the RTSP group.
  fileprivate var placesOfGroup: [String] { portsOfGroup.map { portName(group?.address ?? "", $0) } }

  /// The places that were requested for RTP and RTCP, by destinations and the group.
  fileprivate var requestedPlaces: [String] {
    placesOfGroup
      + destinations.flatMap { destination in
        destination.requestedPorts.flatMap(destination.ports).map { portName(destination.host, $0) }
      }
  }
}

/// Returns a port of a host that packets are sent to, as an error shows it.
private func portName(_ host: String, _ port: UInt16) -> String { "\(host) port \(port)" }

extension StreamDestination {
  /// The ports of RTP that were requested: that of the pictures, and that of the sound.
  var requestedPorts: [UInt16] {
    guard case .port(let port) = soundPort else { return [self.port] }
    return [self.port, port]
  }

  /// Returns the first port at which packets of both would arrive, RTP of at least one of them; nil for none.
  func port(sharedWith other: StreamDestination) -> UInt16? {
    let (own, others) = (requestedPorts, other.requestedPorts)
    return own.first { others.flatMap(other.ports).contains($0) } ?? others.first { own.flatMap(ports).contains($0) }
  }

  /// Returns the ports of RTP and RTCP whose RTP is at `port`.
  func ports(from port: UInt16) -> [UInt16] { multiplexesRTCP ? [port] : [port, port &+ 1] }
}
