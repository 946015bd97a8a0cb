import CLinux
import Glibc
package import Platform
import RTP
package import SRTP
import Synchronization

/// SRTP and SRTCP of one track to one WebRTC peer.
///
/// All peers share the packets of a stream. Each has keys, payload types, sequence numbers and an address of its own: the
/// transport copies a packet, writes the payload type of the peer's offer and the peer's number into it, and encrypts the
/// copy.
package final class PeerTransport: PacketTransport, @unchecked Sendable {
  // Sendable: what the send thread does not use alone is under a mutex.

  /// The payload types of the peer's offer.
  package struct PayloadTypes: Sendable {
    /// The type of the stream.
    package var media: UInt8
    /// The type of its retransmissions; nil without.
    package var retransmission: UInt8?
    /// The number of the header extension with the time of sending, 1 to 14; nil without.
    package var sendTime: UInt8?

    /// Creates a value.
    package init(media: UInt8, retransmission: UInt8? = nil, sendTime: UInt8? = nil) {
      (self.media, self.retransmission, self.sendTime) = (media, retransmission, sendTime)
    }
  }

  /// The way to the peer.
  package enum Way: Sendable {
    /// UDP from a socket to an address of its family. `source` is the local address that the peer knows; nil leaves it to
    /// the kernel.
    case datagrams(PeerSocket, to: SocketAddress, from: IPAddress?)
    /// A connection of the peer.
    case connection(PeerConnection)
  }

  private let types: PayloadTypes
  private let protector: PacketProtector
  private let way: Mutex<Way>
  private let inbox: ControlInbox
  private let batch = PacketBatch(packets: chunk)
  private var messages = MessageVector(capacity: chunk)
  /// The address in the form that the kernel takes, for all messages.
  private let name: UnsafeMutablePointer<sockaddr_storage>
  private var nameLength: socklen_t = 0
  /// The socket of the present way; nil where it is a connection.
  private var socket: PeerSocket?
  private var source: IPAddress?
  /// The connection of the present way, and the one before it, whose descriptor the send thread may still watch.
  private var (connection, formerConnection): (PeerConnection?, PeerConnection?) = (nil, nil)
  /// The packets for a connection, one behind the other, and their ends.
  private var framed = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var ends: [Int] = []
  /// The amount by which the stream's numbers exceed the peer's; nil before the first packet.
  private var offset: UInt16?
  /// `true` if the kernel takes messages of several packets; `false` once it has refused one.
  private var takesGroups = true
  /// The writer of the times of sending; nil where the peer takes none.
  private var sendTimes: SendTimeExtension?
  /// Room for one RTCP datagram and its protection.
  private let controlMemory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)

  /// The packets that are encrypted and sent at a time. A packet that had no room is encrypted once more.
  private static let chunk = 64
  /// The same on a connection, which often takes only some of them.
  private static let framedChunk = 16
  /// The room for one of them.
  private static let framedBytes = 1280
  /// The last packets of which one may be sent again: those that had no room, and all that the history holds for a peer
  /// that takes no stream of retransmissions.
  private static let (repeatable, repeatableByHistory) = (2 * chunk, 8192)
  /// The numbers at which a peer's stream begins. They are far below the wrap: a receiver that loses the packets before
  /// one would count too few wraps, and decrypt nothing any more (RFC 3711 section 3.3.1).
  private static let firstNumbers = UInt16(0)..<0x4000

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - key: the key of what is sent. Transports of other tracks of the peer may share it, because their sources differ.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left, `SRTPError`.
  package init(_ types: PayloadTypes, key: SRTPKey, way: Way) throws {
    self.types = types
    let repeatable = types.retransmission == nil ? Self.repeatableByHistory : Self.repeatable
    protector = try PacketProtector(key, repeatable: repeatable)
    sendTimes = types.sendTime.map { SendTimeExtension(number: $0, repeatable: repeatable) }
    self.way = Mutex(way)
    inbox = try ControlInbox(limit: 32)
    name = .allocate(capacity: 1)
    name.initialize(to: sockaddr_storage())
  }

  deinit {
    name.deallocate()
    controlMemory.deallocate()
    framed.deallocate()
  }

  /// Sends on another way from the next packet on. Any thread.
  package func move(to way: Way) { self.way.withLock { $0 = way } }

  /// Takes an SRTCP datagram of the peer. Any thread.
  package func receive(control datagram: [UInt8]) { inbox.add(datagram) }

  /// Copies the present way into the form that the kernel takes.
  private func adoptWay() {
    way.withLock { way in
      switch way {
      case .datagrams(let socket, let address, let source):
        use(nil)
        (self.socket, self.source) = (socket, source)
        nameLength = address.length
        address.withPointer { address in
          UnsafeMutableRawPointer(name).copyMemory(from: address, byteCount: Int(nameLength))
        }
      case .connection(let connection):
        use(connection)
        socket = nil
      }
    }
  }

  private func use(_ connection: PeerConnection?) {
    guard connection !== self.connection else { return }
    (formerConnection, self.connection) = (self.connection, connection)
  }

  package func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress {
    adoptWay()
    var progress = SendProgress(next: packets.lowerBound)
    while progress.next < packets.upperBound, progress.end == .done {
      // Encrypting in vain is expensive.
      if let connection, !connection.hasRoom {
        progress.end = .full
        break
      }
      let size = connection == nil ? Self.chunk : Self.framedChunk
      let chunk = progress.next..<min(progress.next + size, packets.upperBound)
      batch.removeAll()
      do throws(SRTPError) {
        for index in chunk { try protect(frame.batch[index]) }
      } catch {
        // No packet of the rest could be read: the key is used up.
        progress.lost += packets.upperBound - progress.next
        progress.next = packets.upperBound
        return progress
      }
      if let connection {
        sendChunk(&progress, on: connection)
      } else {
        messages.fill(from: batch, segments: frame.segmentsLimit)
        messages.address(to: name, length: nameLength, from: source)
        sendChunk(&progress, atATime: frame.messagesAtATime)
      }
    }
    return progress
  }

  private func protect(_ packet: PacketBatch.Packet) throws(SRTPError) {
    let growth = sendTimes == nil ? 0 : SendTimeExtension.byteCount
    try protector.protect(packet, into: batch, growth: growth) { memory in
      let second = memory.load(fromByteOffset: 1, as: UInt8.self)
      let isRetransmission = second & 0x7f == RTPPayloadType.retransmission.rawValue
      let type = isRetransmission ? types.retransmission ?? types.media : types.media
      memory.storeBytes(of: second & 0x80 | type, toByteOffset: 1, as: UInt8.self)
      // A retransmission has a number of its own, and behind its header the original's (RFC 4588 section 4).
      let place = isRetransmission ? packet.header.count - RetransmissionStream.originalSequenceNumberBytes : 2
      let number = UInt16(bigEndian: memory.loadUnaligned(fromByteOffset: place, as: UInt16.self))
      let own = number &- offset(at: number)
      memory.storeBytes(of: own.bigEndian, toByteOffset: place, as: UInt16.self)
      sendTimes?.insert(into: memory, count: packet.count, number: isRetransmission ? nil : own)
    }
  }

  /// Returns the difference between the stream's numbers and the peer's, whose first packet has the number `first`.
  private func offset(at first: UInt16) -> UInt16 {
    if let offset { return offset }
    let made = first &- UInt16.random(in: Self.firstNumbers)
    offset = made
    return made
  }

  package var sequenceOffset: UInt16 { offset ?? 0 }

  /// Sends the packets of ``batch`` on a connection, as many as there is room for.
  private func sendChunk(_ progress: inout SendProgress, on connection: PeerConnection) {
    let bytes = frame()
    guard let taken = connection.send(bytes, endOfPacket: { place in ends.first { $0 >= place } ?? place }) else {
      return lose(EPIPE, &progress)
    }
    let sent = ends.count { $0 <= taken }
    progress.packets += sent
    progress.bytes += taken - sent * PeerConnection.lengthBytes
    progress.next += sent
    if sent < batch.count { progress.end = .full }
  }

  /// Copies the packets of ``batch`` one behind the other, each behind its length, and notes their ends.
  private func frame() -> UnsafeRawBufferPointer {
    let count = batch.totalBytes + batch.count * PeerConnection.lengthBytes
    if framed.count < count {
      framed.deallocate()
      framed = .allocate(byteCount: max(count, Self.framedChunk * Self.framedBytes), alignment: 8)
    }
    ends.removeAll(keepingCapacity: true)
    var place = 0
    for index in 0..<batch.count {
      let packet = batch[index]
      framed.storeBytes(of: UInt16(packet.count).bigEndian, toByteOffset: place, as: UInt16.self)
      place += PeerConnection.lengthBytes
      // All of a packet that was copied is its header.
      UnsafeMutableRawBufferPointer(rebasing: framed[place...]).copyMemory(from: packet.header)
      place += packet.header.count
      ends.append(place)
    }
    return UnsafeRawBufferPointer(rebasing: framed[..<place])
  }

  /// Sends the packets of ``batch``. A packet that the kernel refuses for good is lost.
  private func sendChunk(_ progress: inout SendProgress, atATime limit: Int) {
    guard let socket else { return }
    var sent = 0
    while sent < batch.count {
      if takesGroups, !messages.isBoundary(sent) { takesGroups = false }
      let list = takesGroups ? messages.grouped(sent..<batch.count) : messages.plain(sent..<batch.count)
      let count = uninterrupted {
        nightjar_send_messages(
          socket.fileDescriptor, list.baseAddress.unsafelyUnwrapped, UInt32(min(limit, list.count)))
      }
      if count > 0 {
        let first = sent
        for message in 0..<Int(count) {
          progress.bytes += Int(list[message].sent)
          sent += takesGroups ? messages.packets(inGroup: message, from: first) : 1
        }
        progress.packets += sent - first
        progress.next += sent - first
        continue
      }
      let error = errno
      switch error {
      case EAGAIN, ENOBUFS, ENOMEM:
        progress.errorNumber = error
        // The socket is every peer's: its room is no event of this one.
        progress.end = .busy
        return
      case EMSGSIZE, EINVAL, EIO, EOPNOTSUPP, ENOPROTOOPT:
        if takesGroups, messages.packets(inGroup: 0, from: sent) > 1 {
          takesGroups = false
          continue
        }
        guard error == EMSGSIZE else { return lose(error, &progress) }
        progress.errorNumber = error
        progress.lost += 1
        progress.next += 1
        sent += 1
      default: return lose(error, &progress)
      }
    }
  }

  private func lose(_ errorNumber: CInt, _ progress: inout SendProgress) {
    progress.errorNumber = errorNumber
    progress.end = .unreachable
    takesGroups = true
  }

  package func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
    adoptWay()
    batch.removeAll()
    do throws(SRTPError) { try protect(PacketBatch.Packet(header: header, payload: payload)) } catch { return false }
    return sendOnce()
  }

  package func send(control bytes: UnsafeRawBufferPointer) {
    guard bytes.count + PacketProtector.controlRoom <= controlMemory.count else { return }
    adoptWay()
    controlMemory.copyMemory(from: bytes)
    do throws(SRTPError) {
      let count = try protector.protectControl(controlMemory, count: bytes.count)
      batch.removeAll()
      let datagram = UnsafeRawBufferPointer(rebasing: controlMemory[..<count])
      if let connection { return connection.send(datagram) }
      _ = batch.append(
        copying: PacketBatch.Packet(header: datagram, payload: UnsafeRawBufferPointer(start: nil, count: 0)))
      _ = sendOnce()
    } catch {
      // Reports may be lost.
    }
  }

  /// Sends the one packet of ``batch``.
  private func sendOnce() -> Bool {
    if let connection {
      let bytes = frame()
      return connection.send(bytes, endOfPacket: { _ in bytes.count }) == bytes.count
    }
    guard let socket else { return false }
    messages.fill(from: batch, segments: 1)
    messages.address(to: name, length: nameLength, from: source)
    let list = messages.plain(0..<1)
    return nightjar_send_messages(socket.fileDescriptor, list.baseAddress.unsafelyUnwrapped, 1) == 1
  }

  package func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int {
    inbox.take(into: memory, hasMore: &hasMore)
  }

  package var framesInFlight: Int { 0 }
  package var losesBursts: Bool { true }
  package func willContinue() {}
  package func notePart(isFirst: Bool, isLast: Bool) {}
  package func isReachable() -> Bool {
    adoptWay()
    return connection?.isClosed != true
  }
  package var descriptors: (output: CInt?, input: CInt?) { (connection?.fileDescriptor, inbox.fileDescriptor) }
}
