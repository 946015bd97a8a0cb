package import Media
import Platform
package import RTP
import SRTP
import Synchronization

/// The sound of a destination, which has ports of its own beside those of the pictures.
struct DestinationSound: Sendable {
  /// The identity of the sound's viewer in the pipeline.
  let id: ViewerID
  /// The track of the sound.
  let track: Int
  /// The port of the sound's RTP.
  let port: UInt16
  /// The address of the sound's RTP.
  let address: SocketAddress
  /// The address of the sound's RTCP.
  let controlAddress: SocketAddress
  /// The protection of the packets.
  let protection: StreamProtection?
  /// `true` if nobody requested the port: then the sound gives way to another destination at that port.
  let isAutomatic: Bool
}

/// The sound of destinations.
extension Pipeline {
  /// A sound that was prepared and is not sent yet.
  struct PreparedSound {
    let sound: DestinationSound
    let transport: DatagramTransport
    let kind: RTPOutput.Kind
    let figures: ViewerFigures
  }

  /// Returns the sound for a new destination; nil where it gets none, or its packets carry the sound beside the
  /// pictures.
  ///
  /// - Throws: ``StreamDestinationError`` where the requested port is another destination's, or the system gives no
  ///   socket; ``PacketizerError`` and ``SRTPError`` as for the pictures.
  func prepareSound(
    of entry: PipelineDestination, _ key: SRTPKey?, _ multicast: MulticastOptions, _ list: inout ViewerList
  ) throws -> PreparedSound? {
    let destination = entry.destination
    guard let sound, !destination.payload.carriesSound,
      let port = destination.soundPort.number(beside: destination.port)
    else {
      if sound != nil, entry.missedSound != nil { list.soundOmissions += 1 }
      return nil
    }
    let track = tracks.count - 1
    let address = entry.address.with(port: port)
    let control = destination.multiplexesRTCP ? address : address.with(port: port &+ 1)
    let isAutomatic = destination.soundPort.isAutomatic
    let (present, own) = (list.destinations.flatMap(\.ways), entry.ways)
    for other in present + own {
      guard [other.address, other.control].contains(address) || other.address == control else { continue }
      guard isAutomatic || other.isAutomatic else {
        throw StreamDestinationError.soundPort(destination.description, port)
      }
      if isAutomatic {
        list.soundOmissions += 1
        return nil
      }
    }
    if list.sharedGroups.contains(address) {
      guard isAutomatic else { throw StreamDestinationError.soundPort(destination.description, port) }
      list.soundOmissions += 1
      return nil
    }
    var kind = RTPOutput.Kind(payload: .opus(sound.channels), packetSize: destination.maximumPacketSize)
    let id = list.nextID()
    if !sending.sharesPackets { kind.viewer = id }
    if let key { kind.protection = list.renewedProtection(by: key) }
    try kind.check()
    let name = destination.soundURL(port: port)
    let transport = try datagramTransport(
      to: address, control: destination.multiplexesRTCP ? nil : control, timeToLive: destination.timeToLive,
      multicast: multicast, name: name, &list)
    let peer = ViewerPeer(
      address.isMulticast ? .multicast : .udp, address: address.text, port: Int(port), isEncrypted: key != nil)
    return PreparedSound(
      sound: DestinationSound(
        id: id, track: track, port: port, address: address, controlAddress: control, protection: kind.protection,
        isAutomatic: isAutomatic),
      transport: transport, kind: kind,
      figures: ViewerFigures(id: id, name: name, peer: peer, track: track, client: entry.id))
  }

  /// Ends the sound of destinations whose automatic port is one of `entry`'s.
  func yieldSounds(to entry: PipelineDestination, _ list: inout ViewerList) {
    yieldSounds(&list) { sound in
      entry.ways.contains {
        [$0.address, $0.control].contains(sound.address) || $0.address == sound.controlAddress
      }
    }
  }

  /// Ends the sound of a destination whose automatic port another camera has taken, or begins the sound where the port is
  /// free again. The pictures go on. Does nothing if there is no such destination. Any thread may call it.
  ///
  /// - Throws: as ``add(_:)``, where the sound cannot begin.
  package func setSoundTaken(_ isTaken: Bool, of id: ViewerID) throws {
    try viewerList.withLock { list in
      guard let index = list.destinations.firstIndex(where: { $0.id == id }),
        list.destinations[index].destination.soundPort.isAutomatic,
        list.destinations[index].destination.soundPort.isTaken != isTaken
      else { return }
      list.destinations[index].destination.soundPort = isTaken ? .taken : .automatic
      if isTaken {
        yieldSounds(&list) { [sound = list.destinations[index].sound] in $0.id == sound?.id }
      } else if list.destinations[index].sound == nil {
        let entry = list.destinations[index]
        let multicast = try entry.destination.multicastOptions(for: entry.address)
        guard let prepared = try prepareSound(of: entry, entry.protection?.key, multicast, &list) else { return }
        list.destinations[index].sound = prepared.sound
        list.destinations[index].descriptionChanges += 1
        list.soundChanges += 1
        list.announcer?.remove(id)
        try announce(list.destinations[index], multicast, &list)
        start(prepared.figures, prepared.transport, prepared.kind, track: prepared.sound.track)
      }
      noteWatched(list)
    }
  }

  /// Stops sending sound to the automatic ports that `isInTheWay` selects, and updates the session descriptions of
  /// their destinations.
  func yieldSounds(_ list: inout ViewerList, where isInTheWay: (DestinationSound) -> Bool) {
    for index in list.destinations.indices {
      guard let sound = list.destinations[index].sound, sound.isAutomatic, isInTheWay(sound) else { continue }
      list.destinations[index].sound = nil
      list.destinations[index].descriptionChanges += 1
      list.soundChanges += 1
      list.soundOmissions += 1
      end(sound, goodbye: true)
      let entry = list.destinations[index]
      list.announcer?.remove(entry.id)
      // This cannot fail: the destination was announced before.
      if let multicast = try? entry.destination.multicastOptions(for: entry.address) {
        try? announce(entry, multicast, &list)
      }
    }
  }

  /// Ends the sound of a destination.
  func end(_ sound: DestinationSound, goodbye: Bool) {
    statisticsRecorder.viewers.withLock { $0.remove(sound.id) }
    tracks[sound.track].sendStage.remove(sound.id, goodbye: goodbye)
  }

  /// The number of times that a destination got no sound because its automatic port is in use.
  package var soundOmissions: Int { viewerList.withLock { $0.soundOmissions } }

  /// The number of changes of what the destinations' session descriptions say.
  package var descriptionChanges: Int { parameterSets.changes + viewerList.withLock { $0.soundChanges } }
}

extension PipelineDestination {
  /// The port of the packets of sound; nil if none of their own carry it.
  package var soundPort: UInt16? { sound?.port }

  /// The reason why the destination gets no sound although nobody has declined it; nil for all other destinations. For
  /// a stream that has a sound.
  package var missedSound: String? {
    guard sound == nil, !destination.payload.carriesSound, destination.soundPort.isAutomatic else { return nil }
    guard let port = StreamDestination.SoundPort.automatic.number(beside: destination.port) else {
      return "port \(destination.port) has no port for sound 4 above it"
    }
    return "its port for sound, \(port), is in use"
  }

  /// The addresses of the destination's packets and of their RTCP. `isAutomatic` is `true` for those that give way.
  var ways: [(address: SocketAddress, control: SocketAddress, port: UInt16, isAutomatic: Bool)] {
    let pictures = [(address: address, control: controlAddress, port: destination.port, isAutomatic: false)]
    return pictures + (sound.map { [($0.address, $0.controlAddress, $0.port, $0.isAutomatic)] } ?? [])
  }
}

extension StreamDestination {
  /// The port of the packets of sound, for a payload that carries none.
  package enum SoundPort: Hashable, Sendable {
    /// The port of the pictures plus four, unless that is another destination's. Not plus two: that is often the next
    /// destination's port.
    case automatic
    /// The port of the pictures plus four, which another camera uses: no sound.
    case taken
    /// No sound, as was requested.
    case none
    /// The port that was requested.
    case port(UInt16)

    /// `true` if no port was requested.
    var isAutomatic: Bool { self == .automatic }
    /// `true` if another camera uses the port.
    package var isTaken: Bool { if case .taken = self { true } else { false } }

    /// Returns `true` if both were requested alike. What another camera does with the port makes no other destination.
    package static func == (one: SoundPort, other: SoundPort) -> Bool {
      switch (one, other) {
      case (.automatic, .automatic), (.automatic, .taken), (.taken, .automatic), (.taken, .taken): true
      case (.none, .none): true
      case (.port(let one), .port(let other)): one == other
      default: false
      }
    }

    package func hash(into hasher: inout Hasher) {
      switch self {
      case .automatic, .taken: hasher.combine(0)
      case .none: hasher.combine(1)
      case .port(let port):
        hasher.combine(2)
        hasher.combine(port)
      }
    }

    /// Returns the port beside `port`, that of the pictures; nil for no sound.
    package func number(beside pictures: UInt16) -> UInt16? {
      switch self {
      case .automatic: pictures < UInt16.max - 4 ? pictures + 4 : nil
      case .taken, .none: nil
      case .port(let port): port
      }
    }
  }

  /// Returns the same destination with the payload for pictures of `codec`, where its URL names none.
  package func resolved(for codec: VideoCodec) -> StreamDestination {
    guard !namesPayload else { return self }
    var resolved = self
    resolved.payload = .pictures(codec)
    return resolved
  }

  /// Returns the payload for a stream of pictures of `codec`, and of `sound` if it has any.
  ///
  /// - Throws: ``StreamDestinationError/otherCodec(_:payload:codec:)`` where the URL names the payload of another codec.
  package func payload(for codec: VideoCodec, sound: OpusChannels?) throws(StreamDestinationError) -> StreamPayload {
    let pictures = payload.with(codec: codec)
    guard !namesPayload || pictures.name == payload.name else {
      throw .otherCodec(description, payload: payload.title, codec: codec.title)
    }
    return soundPort == .none ? pictures : sound.map { pictures.with(sound: $0) } ?? pictures
  }

  /// Returns the URL of the packets of sound.
  func soundURL(port: UInt16) -> String {
    "\(protection == nil ? "rtp" : "srtp")://\(IPAddress.bracketed(host)):\(port)?payload=opus"
  }
}
