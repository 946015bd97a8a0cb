import CLinux
import Glibc
package import Platform
import RTP
package import SRTP
import Synchronization

/// SRTP and SRTCP of one track to one WebRTC peer.
///
/// All peers share the packets of a stream. Each has keys, payload types and an address of its own: the transport copies
/// a packet, writes the payload type of the peer's offer into it, and encrypts the copy.
package final class PeerTransport: PacketTransport, @unchecked Sendable {
  // Sendable: what the send thread does not use alone is under a mutex.

  /// The payload types of the peer's offer.
  package struct PayloadTypes: Sendable {
    /// The type of the stream.
    package var media: UInt8
    /// The type of its retransmissions; nil without.
    package var retransmission: UInt8?

    /// Creates a value.
    package init(media: UInt8, retransmission: UInt8? = nil) {
      (self.media, self.retransmission) = (media, retransmission)
    }
  }

  /// The way to the peer.
  package struct Way: Sendable {
    /// The socket.
    package var socket: PeerSocket
    /// The peer's address, of the socket's family.
    package var address: SocketAddress
    /// The local address that the peer knows; nil leaves it to the kernel.
    package var source: IPAddress?

    /// Creates a way.
    package init(socket: PeerSocket, address: SocketAddress, from source: IPAddress?) {
      (self.socket, self.address, self.source) = (socket, address, source)
    }
  }

  private let types: PayloadTypes
  private let protector: PacketProtector
  private let way: Mutex<Way>
  private let received = Mutex<[[UInt8]]>([])
  private let arrival: Interrupt
  private let batch = PacketBatch(packets: chunk)
  private var messages = MessageVector(capacity: chunk)
  /// The address in the form that the kernel takes, for all messages.
  private let name: UnsafeMutablePointer<sockaddr_storage>
  private var nameLength: socklen_t = 0
  private var socket: PeerSocket
  private var source: IPAddress?
  /// `true` if the kernel takes messages of several packets; `false` once it has refused one.
  private var takesGroups = true
  /// Room for one RTCP datagram and its protection.
  private let controlMemory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)

  /// The packets that are encrypted and sent at a time. A packet that had no room is encrypted once more, which libsrtp
  /// allows for its last 128 packets.
  private static let chunk = 64
  /// The most RTCP datagrams that wait to be read; more are lost, as in a socket's buffer.
  private static let receiveLimit = 32

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - key: the key of what is sent. Transports of other tracks of the peer may share it, because their sources differ.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left, `SRTPError`.
  package init(_ types: PayloadTypes, key: SRTPKey, way: Way) throws {
    self.types = types
    protector = try PacketProtector(key, allowsRepetition: true)
    self.way = Mutex(way)
    (socket, source) = (way.socket, way.source)
    arrival = try Interrupt()
    name = .allocate(capacity: 1)
    name.initialize(to: sockaddr_storage())
  }

  deinit {
    name.deallocate()
    controlMemory.deallocate()
  }

  /// Sends on another way from the next packet on. Any thread.
  package func move(to way: Way) { self.way.withLock { $0 = way } }

  /// Takes an SRTCP datagram of the peer. Any thread.
  package func receive(control datagram: [UInt8]) {
    received.withLock {
      if $0.count < Self.receiveLimit { $0.append(datagram) }
      // Under the lock: otherwise the other side could clear this interrupt together with the one before, and not see
      // it.
      arrival.fire()
    }
  }

  /// Copies the present way into the form that the kernel takes.
  private func adoptWay() {
    way.withLock { way in
      (socket, source) = (way.socket, way.source)
      nameLength = way.address.length
      way.address.withPointer { address in
        UnsafeMutableRawPointer(name).copyMemory(from: address, byteCount: Int(nameLength))
      }
    }
  }

  func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress {
    adoptWay()
    var progress = SendProgress(next: packets.lowerBound)
    while progress.next < packets.upperBound, progress.end == .done {
      let chunk = progress.next..<min(progress.next + Self.chunk, packets.upperBound)
      batch.removeAll()
      do throws(SRTPError) {
        for index in chunk { try protect(frame.batch[index]) }
      } catch {
        // No packet of the rest could be read: the key is used up.
        progress.lost += packets.upperBound - progress.next
        progress.next = packets.upperBound
        return progress
      }
      messages.fill(from: batch, segments: frame.segmentsLimit)
      messages.address(to: name, length: nameLength, from: source)
      sendChunk(&progress, atATime: frame.messagesAtATime)
    }
    return progress
  }

  private func protect(_ packet: PacketBatch.Packet) throws(SRTPError) {
    try protector.protect(packet, into: batch) { memory in
      let second = memory.load(fromByteOffset: 1, as: UInt8.self)
      let isRetransmission = second & 0x7f == RTPPayloadType.retransmission.rawValue
      let type = isRetransmission ? types.retransmission ?? types.media : types.media
      memory.storeBytes(of: second & 0x80 | type, toByteOffset: 1, as: UInt8.self)
    }
  }

  /// Sends the packets of ``batch``. A packet that the kernel refuses for good is lost.
  private func sendChunk(_ progress: inout SendProgress, atATime limit: Int) {
    var sent = 0
    while sent < batch.count {
      if takesGroups, !messages.isBoundary(sent) { takesGroups = false }
      let list = takesGroups ? messages.grouped(sent..<batch.count) : messages.plain(sent..<batch.count)
      let count = nightjar_send_messages(
        socket.fileDescriptor, list.baseAddress.unsafelyUnwrapped, UInt32(min(limit, list.count)))
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
      case EINTR: continue
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

  func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
    adoptWay()
    batch.removeAll()
    do throws(SRTPError) { try protect(PacketBatch.Packet(header: header, payload: payload)) } catch { return false }
    return sendOnce()
  }

  func send(control bytes: UnsafeRawBufferPointer) {
    guard bytes.count + PacketProtector.controlRoom <= controlMemory.count else { return }
    adoptWay()
    controlMemory.copyMemory(from: bytes)
    do throws(SRTPError) {
      let count = try protector.protectControl(controlMemory, count: bytes.count)
      batch.removeAll()
      let datagram = UnsafeRawBufferPointer(rebasing: controlMemory[..<count])
      _ = batch.append(
        copying: PacketBatch.Packet(header: datagram, payload: UnsafeRawBufferPointer(start: nil, count: 0)))
      _ = sendOnce()
    } catch {
      // Reports may be lost.
    }
  }

  /// Sends the one packet of ``batch``.
  private func sendOnce() -> Bool {
    messages.fill(from: batch, segments: 1)
    messages.address(to: name, length: nameLength, from: source)
    let list = messages.plain(0..<1)
    return nightjar_send_messages(socket.fileDescriptor, list.baseAddress.unsafelyUnwrapped, 1) == 1
  }

  func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int {
    let datagram = received.withLock { list in
      let datagram = list.isEmpty ? nil : list.removeFirst()
      if list.isEmpty { arrival.clear() }
      return datagram
    }
    hasMore = datagram != nil
    guard let datagram, datagram.count <= memory.count else { return 0 }
    memory.copyBytes(from: datagram)
    return datagram.count
  }

  var framesInFlight: Int { 0 }
  var losesBursts: Bool { true }
  func willContinue() {}
  func notePart(isFirst: Bool, isLast: Bool) {}
  func isReachable() -> Bool { true }
  var descriptors: (output: CInt?, input: CInt?) { (nil, arrival.fileDescriptor) }
}
