import RTSP
package import Streaming

/// A camera as RTSP viewers see it (RFC 2326 section 1.3): `rtsp://HOST:PORT/NAME`, and `rtsp://HOST:PORT/NAME/h264` where the
/// pipeline has H.264 beside another codec.
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

  /// The name below a camera's path of its H.264.
  package static let h264Name = "h264"

  /// The paths, with their slashes: that of the stream, and that of its H.264 if there is one.
  var paths: [String] { ["/\(name)"] + (pipeline.hasH264 ? ["/\(name)/\(Self.h264Name)"] : []) }

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
  /// The camera's name.
  let name: String
  let pipeline: Pipeline
  /// `true` for the H.264 beside another codec. It has no group.
  let isH264: Bool
  /// The numbers of the pipeline's tracks, by the tracks' numbers in the presentation.
  let tracks: [Int]
  /// The number that distinguishes its session descriptions from all others.
  let sessionID: UInt64
  private(set) var group: RTSPServerConfiguration.Group?
  /// The groups by track.
  var shared: [SharedGroup]
  var keys: ViewerKeys

  init(_ presentation: Presentation, isH264: Bool, _ configuration: RTSPServerConfiguration, sessionID: UInt64) {
    name = presentation.name
    pipeline = presentation.pipeline
    let group = isH264 ? nil : presentation.group
    let tracks = presentation.pipeline.guestTracks(isH264: isH264)
    (self.group, self.isH264, self.tracks, self.sessionID) = (group, isH264, tracks, sessionID)
    let isGroupProtected = configuration.requiresEncryption && group != nil
    keys = ViewerKeys(
      configuration.suite, presentation.pipeline, tracks: tracks, protectsGroup: isGroupProtected)
    shared = Self.shared(group, presentation.pipeline, tracks, keys)
  }

  /// Returns `true` if it is still this camera, apart from its group.
  func isSame(as presentation: Presentation) -> Bool {
    name == presentation.name && pipeline === presentation.pipeline
  }

  /// Sets another group. The former one must have no members.
  func set(_ group: RTSPServerConfiguration.Group?, requiresEncryption: Bool) {
    self.group = group
    keys.protectGroup(requiresEncryption && group != nil)
    shared = Self.shared(group, pipeline, tracks, keys)
  }

  private static func shared(
    _ group: RTSPServerConfiguration.Group?, _ pipeline: Pipeline, _ tracks: [Int], _ keys: ViewerKeys
  ) -> [SharedGroup] {
    let client = pipeline.nextClient()
    return tracks.map { track in
      SharedGroup(group, pipeline, track: track, client: client, stream: keys.group.first { $0.track == track })
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
