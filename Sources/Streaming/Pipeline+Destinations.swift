import Glibc
import Media
import RTP
public import SRTP
import Synchronization

/// The viewers of a pipeline, as its owner knows them.
struct ViewerList {
  var destinations: [PipelineDestination] = []
  /// Viewers that came by themselves.
  var guests: Set<ViewerID> = []
  /// This side's ports, one pair for each family in use.
  var ports: [CInt: LocalPorts] = [:]
  var lastNumber: UInt64 = 0
  /// The groups that viewers by RTSP share.
  var sharedGroups: [SocketAddress] = []
  /// Announces destinations that ask for it, once there is one.
  var announcer: SessionAnnouncer?

  var count: Int { destinations.count + guests.count }

  /// The protection of a destination's stream like `kind` by `key`: the one that there is, or a new one.
  func protection(by key: SRTPKey, of kind: RTPOutput.Kind) -> StreamProtection {
    let same = destinations.first {
      $0.protection?.key == key && $0.destination.payload == kind.payload
        && $0.destination.maximumPacketSize == kind.packetSize
    }
    return same?.protection ?? renewedProtection(by: key)
  }

  /// The protection of a destination's stream that begins. It changes its source, so that receivers can come at any time.
  func renewedProtection(by key: SRTPKey) -> StreamProtection {
    var protection = newProtection(by: key)
    protection.hasSuccessors = true
    return protection
  }

  /// The protection of a stream that begins.
  func newProtection(by key: SRTPKey) -> StreamProtection {
    StreamProtection(key: key, ssrc: SourceNumbers.next())
  }

  mutating func nextID() -> ViewerID {
    lastNumber += 1
    return ViewerID(number: lastNumber)
  }
}

/// One of the destinations of a pipeline.
public struct PipelineDestination: Sendable {
  /// What tells it from the others.
  public let id: ViewerID
  /// Where it is, as it was asked for.
  public let destination: StreamDestination
  /// Where it is, of RTP.
  public let address: SocketAddress
  /// This side's address, where receivers must know it to join a group.
  var source: SocketAddress?
  /// What its packets are protected by.
  let protection: StreamProtection?
  /// The suite that its packets are protected with; nil where they are not.
  public var suite: SRTPSuite? { protection?.key.suite }

  /// How its receiver is reached.
  var peer: ViewerPeer {
    ViewerPeer(
      address.isMulticast ? .multicast : .udp, address: address.text, port: Int(destination.port),
      isEncrypted: protection != nil)
  }

  /// Where RTCP goes.
  var controlAddress: SocketAddress {
    destination.multiplexesRTCP ? address : address.with(port: destination.port &+ 1)
  }
}

extension Pipeline {
  /// The most destinations and viewers at a time.
  public static let viewerLimit = 1024

  /// The destinations of now, in the order in which they were added.
  public var destinations: [PipelineDestination] { viewerList.withLock { $0.destinations } }

  /// Sends the stream to one more destination, from the next key frame on, which is asked for. Any thread, at any time;
  /// looking a name up may take its time.
  ///
  /// - Throws: ``StreamDestinationError`` for a host without address, one that is a destination already, or where the
  ///   system gives no socket; `SRTPKeyError` for a key file that cannot be used. Then nothing has changed.
  @discardableResult
  public func add(_ destination: StreamDestination) throws -> ViewerID {
    let key = try destination.protection?.key()
    let address = try SocketAddress(host: destination.host, port: destination.port)
    let multicast = try destination.multicastOptions(for: address)
    return try viewerList.withLock { list in
      var kind = RTPOutput.Kind(payload: destination.payload, packetSize: destination.maximumPacketSize)
      let isShared = !without.contains(.sharing)
      if !isShared { kind.viewer = ViewerID(number: list.lastNumber + 1) }
      // A stream of its own has a source of its own: no keystream is used twice.
      if let key { kind.protection = isShared ? list.protection(by: key, of: kind) : list.renewedProtection(by: key) }
      try kind.check()
      let name = destination.description
      var entry = PipelineDestination(
        id: list.nextID(), destination: destination, address: address, source: nil, protection: kind.protection)
      try Self.check(entry, against: list)
      let transport = try datagramTransport(
        to: address, control: destination.multiplexesRTCP ? nil : entry.controlAddress,
        timeToLive: destination.timeToLive, multicast: multicast, name: name, &list)
      if destination.isSourceSpecific || address.isSourceSpecific {
        guard let source = transport.localAddress else { throw StreamDestinationError.noSource(name) }
        entry.source = source
      }
      try announce(entry, multicast, &list)
      start(ViewerFigures(id: entry.id, name: name, peer: entry.peer), transport, kind)
      list.destinations.append(entry)
      return entry.id
    }
  }

  /// Ends the stream to a destination or viewer; false where there is no such one. Any thread, at any time.
  ///
  /// - Parameter isSaid: whether it is told so by BYE; one who only pauses, or has left by itself, is not.
  @discardableResult
  public func remove(_ id: ViewerID, goodbye isSaid: Bool = true) -> Bool {
    viewerList.withLock { list in
      if list.guests.remove(id) == nil {
        guard let index = list.destinations.firstIndex(where: { $0.id == id }) else { return false }
        list.destinations.remove(at: index)
        list.announcer?.remove(id)
      }
      statisticsRecorder.viewers.withLock { $0.remove(id) }
      sendStage.remove(id, goodbye: isSaid)
      requests.setWanted(!restsUnwatched || list.count > 0)
      return true
    }
  }

  /// Announces a destination where it asks for it.
  private func announce(
    _ entry: PipelineDestination, _ multicast: MulticastOptions, _ list: inout ViewerList
  ) throws(StreamDestinationError) {
    // What has a key in its description is for nobody to hear.
    guard entry.destination.isAnnounced, entry.protection == nil, let group = ConnectionAddress(entry.address.text),
      let host = AnnouncementPacket.group(for: group)
    else { return }
    let address = try SocketAddress(host: host, port: AnnouncementPacket.port)
    do throws(SystemFailure) {
      if list.announcer == nil { list.announcer = try SessionAnnouncer() }
      // Unlike those of the other destinations, of which each is a session.
      let sessionID = Self.announcedSession &+ entry.id.number
      let frameRate = encoder.configuration.frameRate
      list.announcer?.add(
        SessionAnnouncer.Session(
          id: entry.id, group: address, timeToLive: entry.destination.timeToLive ?? 1, multicast: multicast
        ) { [sendStage] origin in
          var description = entry.description(sendStage, frameRate, sessionID: sessionID)
          description?.origin = origin
          return description
        })
    } catch {
      throw .socket(entry.destination.description, reason: error.description)
    }
  }

  /// NTP's seconds at the start, as RFC 8866 section 5.2 suggests.
  private static let announcedSession = UInt64(time(nil)) &+ 2_208_988_800

  /// A way to `address` from this side's ports of its family.
  func datagramTransport(
    to address: SocketAddress, control: SocketAddress?, timeToLive: UInt8?,
    multicast: MulticastOptions = MulticastOptions(), name: String, _ list: inout ViewerList
  ) throws(StreamDestinationError) -> DatagramTransport {
    do {
      let ports = try localPorts(family: address.family, &list)
      return try DatagramTransport(
        to: address, control: control, timeToLive: timeToLive, from: ports, multicast: multicast)
    } catch {
      throw .socket(name, reason: error.description)
    }
  }

  /// This side's ports of a family, the same ones for the life of the pipeline.
  func localPorts(family: CInt, _ list: inout ViewerList) throws(SystemFailure) -> LocalPorts {
    if let ports = list.ports[family] { return ports }
    let ports = try LocalPorts(family: family)
    list.ports[family] = ports
    sendStage.watch(ports)
    return ports
  }

  /// Makes a viewer of `transport`.
  func start(
    _ figures: ViewerFigures, _ transport: any PacketTransport, _ kind: RTPOutput.Kind,
    controlKey: SRTPKey? = nil, hasRetransmissionStream: Bool = false, isReturning: Bool = false,
    onStart: (@Sendable (StreamStart) -> Void)? = nil, onGoodbye: (@Sendable () -> Void)? = nil
  ) {
    figures.update { $0.progress = kind.protection?.progress }
    statisticsRecorder.viewers.withLock { $0.present.append(figures) }
    sendStage.add(
      SendStage.Newcomer(
        transport: transport, figures: figures, kind: kind, controlKey: controlKey,
        hasRetransmissionStream: hasRetransmissionStream, isReturning: isReturning, onStart: onStart,
        onGoodbye: onGoodbye))
    requests.setWanted(true)
  }

  /// No two may have one address: a receiver would get every packet twice, or RTCP among its packets.
  private static func check(
    _ new: PipelineDestination, against list: ViewerList
  ) throws(StreamDestinationError) {
    guard list.count < viewerLimit else { throw .tooMany(limit: viewerLimit) }
    if list.sharedGroups.contains(new.address) { throw .sharedGroup(new.destination.description) }
    for other in list.destinations {
      if other.address == new.address {
        throw .sameAddress(
          other.destination.description, new.destination.description, address: new.address.text)
      }
      if other.controlAddress == new.address {
        throw .controlInTheWay(
          new.destination.description, of: other.destination.description, port: new.destination.port)
      }
      if new.controlAddress == other.address {
        throw .controlInTheWay(
          other.destination.description, of: new.destination.description, port: other.destination.port)
      }
    }
  }

  /// Our CNAME for the life of a pipeline: 100 random bits (RFC 7022 section 4.2, a per-session one).
  static func canonicalName() -> String {
    let letters = Array("abcdefghijklmnopqrstuvwxyz234567")
    return "nightjar-" + String((0..<20).map { _ in letters[Int.random(in: 0..<32)] })
  }
}

extension StreamDestination {
  /// How packets leave for the group at `address`.
  ///
  /// - Throws: ``StreamDestinationError`` for an interface that is not there, and for such options at one receiver.
  func multicastOptions(for address: SocketAddress) throws(StreamDestinationError) -> MulticastOptions {
    guard address.isMulticast else {
      let option =
        interface != nil ? "interface" : loopsBack ? "loop" : isSourceSpecific ? "ssm" : isAnnounced ? "sap" : nil
      if let option { throw .notAGroup(option, address.text) }
      return MulticastOptions()
    }
    var options = MulticastOptions(loopsBack: loopsBack)
    if let interface {
      options.interface = if_nametoindex(interface)
      options.interfaceName = interface
      guard options.interface != 0 else { throw .interface(interface) }
    }
    return options
  }
}

extension RTPOutput.Kind {
  /// - Throws: ``PacketizerError`` for packets of a size that cannot carry the payload, ``SRTPError`` where the library
  ///   does not know the suite.
  func check() throws {
    switch payload {
    case .h264: _ = try H264Packetizer(maximumPacketSize: plainPacketSize)
    case .mp2t: _ = try TransportStreamPacketizer(maximumPacketSize: plainPacketSize)
    }
    if let protection { _ = try PacketProtector(protection.key) }
  }
}
