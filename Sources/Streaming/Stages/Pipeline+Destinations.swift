import Glibc
import Media
import Platform
import RTP
package import SRTP
import Synchronization

/// The viewers of a pipeline, as the pipeline's owner knows them.
struct ViewerList {
  var destinations: [PipelineDestination] = []
  /// The viewers that joined on their own, and the number of the track that each gets.
  var guests: [ViewerID: Int] = [:]
  /// This side's ports, one pair for each address family in use.
  var ports: [CInt: LocalPorts] = [:]
  var lastNumber: UInt64 = 0
  /// The groups that viewers by RTSP share.
  var sharedGroups: [SocketAddress] = []
  /// The announcer of destinations that request it; nil before the first one.
  var announcer: SessionAnnouncer?

  /// The number of consumers of each track beside the send stage.
  var consumers: [Int: Int] = [:]
  /// The number of sounds that gave way to another destination.
  var soundChanges = 0
  /// The number of times that a destination got no sound because its automatic port is in use.
  var soundOmissions = 0

  /// Returns `true` if any client takes the track.
  func isWatched(track: Int) -> Bool {
    if consumers[track, default: 0] > 0 { return true }
    if track == 0, !destinations.isEmpty { return true }
    if track > 0, destinations.contains(where: { $0.takesSound }) { return true }
    return guests.values.contains(track)
  }

  /// Returns the protection of a destination's stream like `kind` by `key`: the existing one, or a new one.
  func protection(by key: SRTPKey, of kind: RTPOutput.Kind) -> StreamProtection {
    let same = destinations.first {
      $0.protection?.key == key && $0.payload == kind.payload
        && $0.destination.maximumPacketSize == kind.packetSize
    }
    return same?.protection ?? renewedProtection(by: key)
  }

  /// Returns the protection of a destination's new stream. The stream changes its source, so that receivers can join at
  /// any time.
  func renewedProtection(by key: SRTPKey) -> StreamProtection {
    var protection = newProtection(by: key)
    protection.hasSuccessors = true
    return protection
  }

  /// Returns the protection of a new stream.
  func newProtection(by key: SRTPKey) -> StreamProtection {
    StreamProtection(key: key, ssrc: SourceNumbers.next())
  }

  mutating func nextID() -> ViewerID {
    lastNumber += 1
    return ViewerID(number: lastNumber)
  }
}

/// One of the destinations of a pipeline.
package struct PipelineDestination: Sendable {
  /// The destination's identity in the pipeline.
  package let id: ViewerID
  /// The destination as it was requested.
  package internal(set) var destination: StreamDestination
  /// The address of its RTP.
  package let address: SocketAddress
  /// This side's address, where receivers must know it to join a group.
  var source: SocketAddress?
  /// The content of its packets: the requested one for the pictures' codec, with the stream's sound where they carry it.
  package let payload: StreamPayload
  /// The protection of its packets.
  package let protection: StreamProtection?
  /// The sound that is sent to ports of its own; nil for none.
  var sound: DestinationSound?
  /// The number of changes of its session description beside those of the parameter sets.
  var descriptionChanges: UInt64 = 0
  /// The suite that protects its packets; nil where they are not protected.
  package var suite: SRTPSuite? { protection?.key.suite }

  /// `true` if it gets the stream's sound.
  var takesSound: Bool { sound != nil || destination.payload.carriesSound && destination.soundPort != .none }
  /// The identities of its viewers in the pipeline: that of the pictures, and that of the sound.
  package var viewers: [ViewerID] { [id] + (sound.map { [$0.id] } ?? []) }

  /// The way to its receiver.
  var peer: ViewerPeer {
    ViewerPeer(
      address.isMulticast ? .multicast : .udp, address: address.text, port: Int(destination.port),
      isEncrypted: protection != nil)
  }

  /// The address of its RTCP.
  var controlAddress: SocketAddress {
    destination.multiplexesRTCP ? address : address.with(port: destination.port &+ 1)
  }
}

extension Pipeline {
  /// The most destinations at a time.
  private static let destinationLimit = 1024

  /// The present destinations, in the order in which they were added.
  package var destinations: [PipelineDestination] { viewerList.withLock { $0.destinations } }

  /// Returns the present destination that is `destination` in a stream of this codec, whether a URL names the codec's payload or
  /// none; nil if there is none.
  package func destination(matching destination: StreamDestination) -> PipelineDestination? {
    let wanted = destination.resolved(for: codec)
    return destinations.first { $0.destination.resolved(for: codec) == wanted }
  }

  /// Sends the stream to one more destination, beginning with the next key frame, which is requested. Any thread may
  /// call it, at any time. Looking up a name may take time.
  ///
  /// - Parameter known: the address of its host; nil looks it up.
  /// - Throws: ``StreamDestinationError`` for a host without address, one that is a destination already, or where the
  ///   system gives no socket; `SRTPKeyError` for a key file that cannot be used. Then nothing has changed.
  @discardableResult
  package func add(_ destination: StreamDestination, at known: SocketAddress? = nil) throws -> ViewerID {
    let key = try destination.protection?.key()
    let address = try known ?? SocketAddress(host: destination.host, port: destination.port)
    let multicast = try destination.multicastOptions(for: address)
    return try viewerList.withLock { list in
      let payload = try destination.payload(for: codec, sound: sound?.channels)
      var kind = RTPOutput.Kind(payload: payload, packetSize: destination.maximumPacketSize)
      let isShared = sending.sharesPackets
      if !isShared { kind.viewer = ViewerID(number: list.lastNumber + 1) }
      // A stream of its own has a source of its own: no keystream is used twice.
      if let key { kind.protection = isShared ? list.protection(by: key, of: kind) : list.renewedProtection(by: key) }
      try kind.check()
      let name = destination.description
      var entry = PipelineDestination(
        id: list.nextID(), destination: destination, address: address, source: nil, payload: payload,
        protection: kind.protection)
      try Self.check(entry, against: list)
      let transport = try datagramTransport(
        to: address, control: destination.multiplexesRTCP ? nil : entry.controlAddress,
        timeToLive: destination.timeToLive, multicast: multicast, name: name, &list)
      if destination.isSourceSpecific || address.isSourceSpecific {
        guard let source = transport.localAddress else { throw StreamDestinationError.noSource(name) }
        // The kernel routes by an interface that still waits for DHCP, and leaves the sender's address open.
        guard !source.isUnspecified || multicast.isLoopback else { throw StreamDestinationError.noAddress(name) }
        entry.source = source
      }
      let prepared = try prepareSound(of: entry, key, multicast, &list)
      entry.sound = prepared?.sound
      try announce(entry, multicast, &list)
      yieldSounds(to: entry, &list)
      start(ViewerFigures(id: entry.id, name: name, peer: entry.peer), transport, kind)
      if let prepared { start(prepared.figures, prepared.transport, prepared.kind, track: prepared.sound.track) }
      list.destinations.append(entry)
      noteWatched(list)
      return entry.id
    }
  }

  /// Ends the stream to a destination or viewer. Returns `false` if there is no such one. Any thread may call it, at
  /// any time.
  ///
  /// - Parameter isSaid: `true` sends BYE. A viewer that only pauses, or has left on its own, gets none.
  @discardableResult
  package func remove(_ id: ViewerID, goodbye isSaid: Bool = true) -> Bool {
    viewerList.withLock { list in
      let track = list.guests.removeValue(forKey: id)
      if track == nil {
        guard let index = list.destinations.firstIndex(where: { $0.id == id }) else { return false }
        if let sound = list.destinations.remove(at: index).sound { end(sound, goodbye: isSaid) }
        list.announcer?.remove(id)
      }
      statisticsRecorder.viewers.withLock { $0.remove(id) }
      self.track(track ?? 0).sendStage.remove(id, goodbye: isSaid)
      noteWatched(list)
      return true
    }
  }

  /// Announces a destination if it requests that.
  func announce(
    _ entry: PipelineDestination, _ multicast: MulticastOptions, _ list: inout ViewerList
  ) throws(StreamDestinationError) {
    // A description that contains a key must not be public.
    guard entry.destination.isAnnounced, entry.protection == nil, let group = ConnectionAddress(entry.address.text),
      let host = AnnouncementPacket.group(for: group)
    else { return }
    let address = try SocketAddress(host: host, port: AnnouncementPacket.port)
    do throws(SystemFailure) {
      if list.announcer == nil { list.announcer = try SessionAnnouncer() }
      // Unlike the identifiers of the other destinations, each of which is a session.
      let sessionID = Self.announcedSession &+ entry.id.number
      let frameRate = encoder.configuration.frameRate
      list.announcer?.add(
        SessionAnnouncer.Session(
          id: entry.id, group: address, timeToLive: entry.destination.timeToLive ?? 1, multicast: multicast
        ) { [tracks] origin in
          var description = entry.description(of: tracks, frameRate, sessionID: sessionID)
          description?.origin = origin
          return description
        })
    } catch {
      throw .socket(entry.destination.description, reason: error.description)
    }
  }

  /// The time at the start, from which the numbers of announced sessions follow.
  private static let announcedSession = SessionDescription.presentSessionID()

  /// Returns a transport to `address` from this side's ports of its family.
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

  /// Returns this side's ports of a family. They stay the same for the life of the pipeline.
  func localPorts(family: CInt, _ list: inout ViewerList) throws(SystemFailure) -> LocalPorts {
    if let ports = list.ports[family] { return ports }
    let ports = try LocalPorts(family: family)
    list.ports[family] = ports
    sendStage.watch(ports)
    return ports
  }

  /// Creates a viewer on `transport`, of the first track unless given.
  func start(
    _ figures: ViewerFigures, _ transport: any PacketTransport, _ kind: RTPOutput.Kind, track: Int = 0,
    controlKey: SRTPKey? = nil, hasRetransmissionStream: Bool = false, retransmissionSource: UInt32? = nil,
    isReturning: Bool = false, place: GuestPlace? = nil,
    onStart: (@Sendable (StreamStart) -> Void)? = nil, onGoodbye: (@Sendable () -> Void)? = nil
  ) {
    let (media, getsH264) = (kind.payload.media, track == h264Track)
    figures.update {
      $0.progress = kind.protection?.progress
      ($0.media, $0.getsH264) = (media, getsH264)
    }
    statisticsRecorder.viewers.withLock { $0.present.append(figures) }
    self.track(track).sendStage.add(
      SendStage.JoiningViewer(
        transport: transport, figures: figures, kind: kind, controlKey: controlKey,
        hasRetransmissionStream: hasRetransmissionStream, retransmissionSource: retransmissionSource,
        isReturning: isReturning, place: place, onStart: onStart, onGoodbye: onGoodbye))
  }

  /// Updates which tracks have clients. The encoder of a track without clients rests; that of the pictures only if
  /// ``restsUnwatched``.
  func noteWatched(_ list: borrowing ViewerList) {
    requests.setWanted(!restsUnwatched || list.isWatched(track: 0))
    sound?.muxed?.setWanted(list.destinations.contains { $0.payload.format.sound != nil })
    for track in tracks.dropFirst() { track.setWatched(list.isWatched(track: track.number)) }
    if let h264 { h264.setWatched(list.guests.values.contains(h264.track.number)) }
  }

  /// Checks that no two destinations have one address: a receiver would get every packet twice, or RTCP among its
  /// packets.
  private static func check(
    _ new: PipelineDestination, against list: ViewerList
  ) throws(StreamDestinationError) {
    guard list.destinations.count < destinationLimit else { throw .tooMany(limit: destinationLimit) }
    if list.sharedGroups.contains(new.address) { throw .sharedGroup(new.destination.description) }
    for other in list.destinations {
      for way in other.ways where !way.isAutomatic {
        if way.address == new.address {
          throw .sameAddress(
            other.destination.description, new.destination.description, address: new.address.text)
        }
        if way.control == new.address {
          throw .controlInTheWay(
            new.destination.description, of: other.destination.description, port: new.destination.port)
        }
        if new.controlAddress == way.address {
          throw .controlInTheWay(
            other.destination.description, of: new.destination.description, port: way.port)
        }
      }
    }
  }

  /// Returns the CNAME for the life of a pipeline: 100 random bits (RFC 7022 section 4.2, a per-session one).
  static func canonicalName() -> String {
    let letters = Array("abcdefghijklmnopqrstuvwxyz234567")
    return "nightjar-" + String((0..<20).map { _ in letters[Int.random(in: 0..<32)] })
  }
}

extension StreamDestination {
  /// Returns the options by which packets are sent to the group at `address`.
  ///
  /// - Throws: ``StreamDestinationError`` for an interface that does not exist, and for multicast options at a single
  ///   receiver.
  package func multicastOptions(for address: SocketAddress) throws(StreamDestinationError) -> MulticastOptions {
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
  /// Checks that packets can be made.
  ///
  /// - Throws: ``PacketizerError`` for packets of a size that cannot carry the payload, ``SRTPError`` where the library
  ///   does not know the suite.
  func check() throws {
    let stream = RTPStream(payloadType: payload.format.encoding.payloadType)
    _ = try payload.format.packetizer(of: stream, maximumPacketSize: plainPacketSize)
    if let protection { _ = try PacketProtector(protection.key) }
  }
}
