import RTSP
public import Streaming

/// A camera as viewers by RTSP find it (RFC 2326 section 1.3): `rtsp://HOST:PORT/NAME`.
public struct Presentation: Sendable {
  /// Its path without the slash. No two of a server have the same.
  public var name: String
  /// Where its pictures come from.
  public var pipeline: Pipeline
  /// The group for multicast; nil refuses it.
  public var group: ServerConfiguration.Group?

  /// A presentation; see the properties.
  public init(name: String, pipeline: Pipeline, group: ServerConfiguration.Group? = nil) {
    self.name = name
    self.pipeline = pipeline
    self.group = group
  }

  /// Whether a URL can name it.
  private var hasUsableName: Bool {
    let isPlain = name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f && $0 != "/" }
    return isPlain && !["", ".", ".."].contains(name) && !name.hasPrefix(RequestURL.trackPrefix)
  }

  /// Where the groups of `presentations` are.
  ///
  /// - Throws: ``ServerError`` for a name that no URL can have, two of one name, and two that want the same group;
  ///   `StreamDestinationError` for a group that is no address.
  static func groups(of presentations: [Presentation]) throws -> [SocketAddress] {
    var names: Set<String> = []
    var groups: [(name: String, media: SocketAddress, control: SocketAddress)] = []
    for presentation in presentations {
      guard presentation.hasUsableName else { throw ServerError.name(presentation.name) }
      guard names.insert(presentation.name).inserted else { throw ServerError.repeatedName(presentation.name) }
      guard let group = presentation.group else { continue }
      let media = try SocketAddress(host: group.address, port: group.port)
      let control = try SocketAddress(host: group.address, port: group.port &+ 1)
      // RTCP of one among the packets of another is no better than two pictures.
      let other = groups.first { [$0.media, $0.control].contains(media) || $0.media == control }
      if let other {
        throw ServerError.sameGroup(other.name, presentation.name, address: group.address, port: group.port)
      }
      groups.append((presentation.name, media, control))
    }
    return groups.map(\.media)
  }
}

/// A presentation that is served, on the server's event loop.
final class ServedPresentation {
  let name: String
  let pipeline: Pipeline
  /// What tells its session descriptions from those of all others.
  let sessionID: UInt64
  private(set) var group: ServerConfiguration.Group?
  var shared: SharedGroup
  var keys: ViewerKeys

  init(_ presentation: Presentation, _ configuration: ServerConfiguration, sessionID: UInt64) {
    name = presentation.name
    pipeline = presentation.pipeline
    group = presentation.group
    self.sessionID = sessionID
    let isGroupProtected = configuration.requiresEncryption && presentation.group != nil
    keys = ViewerKeys(configuration.suite, presentation.pipeline, protectsGroup: isGroupProtected)
    shared = SharedGroup(presentation.group, presentation.pipeline, stream: keys.group)
  }

  /// Whether it is this camera still, apart from its group.
  func isSame(as presentation: Presentation) -> Bool {
    name == presentation.name && pipeline === presentation.pipeline
  }

  /// Takes another group. Nobody may be in the one before.
  func set(_ group: ServerConfiguration.Group?, requiresEncryption: Bool) {
    self.group = group
    keys.protectGroup(requiresEncryption && group != nil)
    shared = SharedGroup(group, pipeline, stream: keys.group)
  }

  /// The ways to send it.
  func transports(_ configuration: ServerConfiguration) -> TransportCapabilities {
    var transports = TransportCapabilities(isMulticastServed: group != nil, isMultiplexingServed: true)
    transports.requiresEncryption = configuration.requiresEncryption
    if configuration.suite != nil { transports.profiles.formUnion([.savp, .savpf]) }
    return transports
  }
}
