import CLinux
import Glibc
import Platform
import RTP

/// RTP and RTCP over UDP to one viewer: two sockets, or one where both share a port (RFC 5761).
final class DatagramTransport: PacketTransport {
  // `exclusivity(unchecked)`: nothing of the transport is called while a socket, or what left by it, changes. See ``Viewer``.
  @exclusivity(unchecked) private var media: ConnectedSocket
  /// RTCP's socket; nil where RTP's carries RTCP.
  @exclusivity(unchecked) private var control: ConnectedSocket?
  /// The socket for RTCP from a group's receivers; nil where there is one receiver.
  private var group: GroupSocket?
  private let multicast: MulticastOptions
  /// `true` if the route was lost, and with it perhaps the membership of the group.
  private var isLost = false
  /// `true` if the kernel takes messages of several packets; `false` once it has refused one.
  private var takesGroups = true
  /// `true` if the kernel reported the refusal of a packet to a read of RTCP at the same port. Then the next packet
  /// meets no such report.
  private var wasRefused = false
  @exclusivity(unchecked) private var outflow = Outflow()

  /// Creates a transport to `address`, whose port is RTP's.
  ///
  /// - Parameters:
  ///   - control: the address of RTCP; nil where it shares RTP's port.
  ///   - timeToLive: the number of routers that a packet may pass; nil is the system's.
  ///   - ports: this side's ports.
  ///   - multicast: the options for packets to a group.
  /// - Throws: ``SystemFailure``.
  init(
    to address: SocketAddress, control: SocketAddress?, timeToLive: UInt8?, from ports: LocalPorts,
    multicast: MulticastOptions = MulticastOptions()
  ) throws(SystemFailure) {
    media = try ConnectedSocket(
      to: address, timeToLive: timeToLive, .media(withControl: control == nil), from: ports, multicast: multicast)
    self.control = nil
    self.multicast = multicast
    isShared = address.isMulticast
    group = nil
    if let control {
      self.control = try ConnectedSocket(
        to: control, timeToLive: timeToLive, .control, from: ports, multicast: multicast)
    }
    // Receivers of a source-specific group do not send to it. Where a group cannot be joined, the stream is sent all
    // the same.
    if address.isMulticast, !address.isSourceSpecific {
      group = try? GroupSocket(joining: control ?? address, interface: multicast.interface, mayWait: true)
    }
    // Without a route the group is joined with the first packet that has one.
    isLost = group?.hasJoined == false
    // At once, so that the viewer's first RTCP is received.
    _ = media.connectIfNeeded()
    _ = self.control?.connectIfNeeded()
  }

  func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress {
    var progress = SendProgress(next: packets.lowerBound)
    guard isReachable() else {
      progress.errorNumber = media.lastRefusal
      progress.end = .unreachable
      return progress
    }
    if wasRefused { (wasRefused, progress.errorNumber) = (false, ECONNREFUSED) }
    while progress.next < packets.upperBound, progress.end == .done {
      let rest = progress.next..<packets.upperBound
      // Packets that are spread over time leave one by one.
      let isGrouped =
        takesGroups && frame.messages.isBoundary(rest.lowerBound) && frame.messages.isBoundary(rest.upperBound)
      let messages = isGrouped ? frame.messages.grouped(rest) : frame.messages.plain(rest)
      send(messages, of: frame, isGrouped: isGrouped, &progress)
    }
    return progress
  }

  /// Sends `messages` until one is refused. After a loss or a change of form in `progress`, the caller calls again.
  private func send(
    _ messages: UnsafeMutableBufferPointer<nightjar_message>, of frame: OutgoingFrame, isGrouped: Bool,
    _ progress: inout SendProgress
  ) {
    var index = 0
    var refusals = 0
    while index < messages.count {
      let first = progress.next
      func packets(_ message: Int) -> Int {
        isGrouped ? frame.messages.packets(inGroup: message, from: first) : 1
      }
      let (socket, limit) = (media.fileDescriptor, UInt32(min(frame.messagesAtATime, messages.count - index)))
      let sent = uninterrupted {
        nightjar_send_messages(socket, messages.baseAddress.unsafelyUnwrapped + index, limit)
      }
      if sent > 0 {
        var taken = 0
        for message in 0..<Int(sent) {
          progress.bytes += Int(messages[index + message].sent)
          taken += packets(message)
        }
        progress.packets += taken
        progress.next += taken
        index += Int(sent)
        refusals = 0
        continue
      }
      let error = errno
      switch error {
      case ECONNREFUSED where refusals == 0:
        // The answer to an earlier packet, reported on this one, which was not sent: send it again.
        progress.errorNumber = error
        refusals += 1
      case EAGAIN:
        progress.errorNumber = error
        progress.end = .full
        return
      case ENOBUFS, ENOMEM:
        progress.errorNumber = error
        progress.end = .busy
        return
      case EMSGSIZE, EINVAL, EIO, EOPNOTSUPP, ENOPROTOOPT:
        if isGrouped, packets(0) > 1 {
          // This interface does not split messages, or not into packets of this size: one by one from here on.
          takesGroups = false
          return
        }
        guard error == EMSGSIZE else { return lose(error, &progress) }
        fallthrough
      case ECONNREFUSED:
        // The fault of this packet alone, or a refusal right after a refusal: go on with the next.
        progress.errorNumber = error
        progress.lost += packets(0)
        progress.next += packets(0)
        index += 1
        refusals = 0
      default:
        return lose(error, &progress)
      }
    }
  }

  private func lose(_ errorNumber: CInt, _ progress: inout SendProgress) {
    // RTCP goes the same way, and nothing that is sent to an address that we no longer have is received. RTCP first, so
    // that it is tried again no later than RTP.
    control?.disconnect(errorNumber)
    media.disconnect(errorNumber)
    isLost = true
    takesGroups = true
    progress.errorNumber = errorNumber
    progress.end = .unreachable
  }

  func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
    guard media.isConnected else { return false }
    return Self.sendOnce(media.fileDescriptor, header, payload)
  }

  func send(control bytes: UnsafeRawBufferPointer) {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    if control == nil {
      guard media.isConnected else { return }
      _ = Self.sendOnce(media.fileDescriptor, bytes, none)
    } else if control?.connectIfNeeded() == true, let descriptor = control?.fileDescriptor {
      guard !Self.sendOnce(descriptor, bytes, none), errno != EAGAIN, errno != ECONNREFUSED else { return }
      control?.disconnect(errno)
    }
  }

  /// Sends one datagram of two parts, a second time if the first attempt only reported the fate of an earlier one.
  private static func sendOnce(
    _ descriptor: CInt, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer
  ) -> Bool {
    withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { vectors in
      vectors[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: header.baseAddress), iov_len: header.count)
      vectors[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: payload.baseAddress), iov_len: payload.count)
      var message = nightjar_message()
      message.header.msg_iov = vectors.baseAddress
      message.header.msg_iovlen = 2
      if nightjar_send_messages(descriptor, &message, 1) == 1 { return true }
      return errno == ECONNREFUSED && nightjar_send_messages(descriptor, &message, 1) == 1
    }
  }

  func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int {
    // An unconnected socket would take datagrams from any sender; a group's members are any senders.
    let isConnected = group != nil || (control == nil ? media.isConnected : control?.isConnected == true)
    guard let descriptor = descriptors.input else { return 0 }
    let count = nightjar_receive(descriptor, memory.baseAddress, memory.count)
    // Refusals of our own datagrams are reported here too; whatever is behind them comes at the next call.
    hasMore = count >= 0
    if count < 0, errno == ECONNREFUSED, control == nil, group == nil { wasRefused = true }
    guard count > 0, count <= memory.count, isConnected else { return 0 }
    let datagram = UnsafeRawBufferPointer(rebasing: memory[..<count])
    if control == nil, RTPMultiplexing(datagram) != .rtcp { return 0 }
    return count
  }

  var losesBursts: Bool { true }
  let isShared: Bool

  var framesInFlight: Int { outflow.isEmpty ? 0 : outflow.framesInFlight(unsent: unsentBytes) }

  func willContinue() {
    if !outflow.isEmpty { outflow.willContinue(unsent: unsentBytes) }
  }

  func notePart(isFirst: Bool, isLast: Bool) {
    // One call to the kernel less for each part, where the transport was empty: the bytes at the end are then the
    // frame's.
    outflow.notePart(isFirst: isFirst, unsent: isLast || !outflow.isEmpty ? unsentBytes : 0)
  }

  private var unsentBytes: Int { max(0, Int(nightjar_unsent_bytes(media.fileDescriptor))) }

  func isReachable() -> Bool {
    guard media.connectIfNeeded() else { return false }
    _ = control?.connectIfNeeded()
    if isLost {
      isLost = false
      group?.joinAgain(interface: multicast.refreshed().interface)
    }
    return true
  }

  var descriptors: (output: CInt?, input: CInt?) {
    let media = media.fileDescriptor
    if let group = group?.fileDescriptor { return (media, group) }
    return (media, control == nil ? media : control?.fileDescriptor)
  }

  /// This side's address of RTP; nil while there is no route.
  var localAddress: SocketAddress? { media.localAddress }
}

/// The frames that a socket still holds, as derived from the bytes that it holds.
package struct Outflow {
  /// The bytes that each of the last frames added, as the kernel counts them, the newest first.
  private var added: InlineArray<4, Int> = .init(repeating: 0)
  private var before = 0

  /// Creates a record of an empty socket.
  package init() {}

  /// The bytes that may remain of packets that have left: a network driver may keep the last ones until others come.
  /// Such a packet delays nothing, and frames of one packet each would otherwise seem to wait for ever.
  package static let keptBytes = 4096

  /// `true` if the socket held nothing at the last reading. Whatever it holds by now belongs to no frame, and there is
  /// no need to read again.
  var isEmpty: Bool { before == 0 }

  /// Returns the number of the last frames that have not left whole, where the socket holds `unsent` bytes; 4 means 4
  /// or more.
  package mutating func framesInFlight(unsent: Int) -> Int {
    before = unsent
    var rest = unsent - Self.keptBytes
    for index in added.indices {
      if rest <= 0 { return index }
      rest -= max(1, added[index])
    }
    return added.count
  }

  /// Notes that another part of the last frame is about to be given to the socket, which holds `unsent` bytes. The
  /// bytes that have left since the part before must not be taken off the frame. A frame that seems small makes the
  /// waiting bytes seem many frames.
  package mutating func willContinue(unsent: Int) { before = unsent }

  /// Notes that a frame, or a part of one, was given as a whole to the socket, which holds `unsent` bytes now.
  package mutating func notePart(isFirst: Bool, unsent: Int) {
    if isFirst {
      for index in added.indices.dropLast().reversed() { added[index + 1] = added[index] }
      added[0] = 0
    }
    added[0] += max(0, unsent - before)
    before = unsent
  }
}
