import RTSP
package import Streaming

/// A camera as RTSP viewers see it (RFC 2326 section 1.3): `rtsp://HOST:PORT/NAME`.
package struct Presentation: Sendable {
  /// The path without the slash. It is unique in a server.
  package var name: String
  /// The source of the pictures.
  package var pipeline: Pipeline
  /// The group for multicast; nil refuses it.
  package var group: RTSPServerConfiguration.Group?

  /// Creates a presentation; see the properties.
  package init(name: String, pipeline: Pipeline, group: RTSPServerConfiguration.Group? = nil) {
    self.name = name
    self.pipeline = pipeline
    self.group = group
  }

  /// `true` if a URL can contain the name.
  private var hasUsableName: Bool {
    let isPlain = name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f && $0 != "/" }
    return isPlain && !["", ".", ".."].contains(name) && !name.hasPrefix(RequestURL.trackPrefix)
  }

  /// Returns the addresses of the groups of `presentations`.
  ///
  /// - Throws: ``RTSPServerError`` for a name that no URL can contain, for two cameras of one name, and for two that
  ///   use the same group; `StreamDestinationError` for a group that is no address.
  static func groups(of presentations: [Presentation]) throws -> [SocketAddress] {
    var names: Set<String> = []
    var groups: [(name: String, media: SocketAddress, control: SocketAddress)] = []
    for presentation in presentations {
      guard presentation.hasUsableName else { throw RTSPServerError.name(presentation.name) }
      guard names.insert(presentation.name).inserted else { throw RTSPServerError.repeatedName(presentation.name) }
      for group in presentation.pipeline.tracks.compactMap({ presentation.group?.ofTrack($0.number) }) {
        let media = try SocketAddress(host: group.address, port: group.port)
        let control = try SocketAddress(host: group.address, port: group.port &+ 1)
        // One group's RTCP among the packets of another is as bad as two pictures in one group.
        let other = groups.first { [$0.media, $0.control].contains(media) || $0.media == control }
        if let other {
          throw RTSPServerError.sameGroup(other.name, presentation.name, address: group.address, port: group.port)
        }
        groups.append((presentation.name, media, control))
      }
    }
    return groups.map(\.media)
  }
}

/// A presentation in service, on the server's event loop.
final class ServedPresentation {
  let name: String
  let pipeline: Pipeline
  /// The number that distinguishes its session descriptions from all others.
  let sessionID: UInt64
  private(set) var group: RTSPServerConfiguration.Group?
  /// The groups by track.
  var shared: [SharedGroup]
  var keys: ViewerKeys

  init(_ presentation: Presentation, _ configuration: RTSPServerConfiguration, sessionID: UInt64) {
    name = presentation.name
    pipeline = presentation.pipeline
    group = presentation.group
    self.sessionID = sessionID
    let isGroupProtected = configuration.requiresEncryption && presentation.group != nil
    keys = ViewerKeys(configuration.suite, presentation.pipeline, protectsGroup: isGroupProtected)
    shared = Self.shared(presentation.group, presentation.pipeline, keys)
  }

  /// Returns `true` if it is still this camera, apart from its group.
  func isSame(as presentation: Presentation) -> Bool {
    name == presentation.name && pipeline === presentation.pipeline
  }

  /// Sets another group. The former one must have no members.
  func set(_ group: RTSPServerConfiguration.Group?, requiresEncryption: Bool) {
    self.group = group
    keys.protectGroup(requiresEncryption && group != nil)
    shared = Self.shared(group, pipeline, keys)
  }

  private static func shared(
    _ group: RTSPServerConfiguration.Group?, _ pipeline: Pipeline, _ keys: ViewerKeys
  ) -> [SharedGroup] {
    let client = pipeline.nextClient()
    return pipeline.tracks.map { track in
      SharedGroup(
        group, pipeline, track: track.number, client: client, stream: keys.group.first { $0.track == track.number })
    }
  }

  /// Returns the transports of the presentation.
  func transports(_ configuration: RTSPServerConfiguration) -> TransportCapabilities {
    var transports = TransportCapabilities(isMulticastServed: group != nil, isMultiplexingServed: true)
    transports.requiresEncryption = configuration.requiresEncryption
    if configuration.suite != nil { transports.profiles.formUnion([.savp, .savpf]) }
    return transports
  }
}
