import CLinux
import Glibc
import Media
import RTP

/// RTP and RTCP over UDP to one viewer: two sockets, or one where both share a port (RFC 5761).
final class DatagramTransport: PacketTransport {
  private var media: ConnectedSocket
  /// RTCP's; nil where RTP's carries it.
  private var control: ConnectedSocket?
  /// Where receivers of a group are heard; nil where it is one receiver.
  private var group: GroupSocket?
  private let multicast: MulticastOptions
  /// Whether the way was lost, and with it perhaps the membership of the group.
  private var isLost = false
  /// Whether messages of several packets are taken: false from the first one on that was not.
  private var takesGroups = true
  /// Whether a refusal of a packet was told to who looked for RTCP at the same port: then the next packet is not told.
  private var wasRefused = false
  private var outflow = Outflow()

  /// A way to `address`, whose port is RTP's.
  ///
  /// - Parameters:
  ///   - control: Where RTCP goes; nil where it shares RTP's port.
  ///   - timeToLive: How many routers a packet may pass; nil is the system's.
  ///   - ports: This side's.
  ///   - multicast: How packets leave for a group.
  /// - Throws: ``SystemFailure``.
  init(
    to address: SocketAddress, control: SocketAddress?, timeToLive: UInt8?, from ports: LocalPorts,
    multicast: MulticastOptions = MulticastOptions()
  ) throws(SystemFailure) {
    media = try ConnectedSocket(
      to: address, timeToLive: timeToLive, .media(withControl: control == nil), from: ports, multicast: multicast)
    self.control = nil
    self.multicast = multicast
    group = nil
    if let control {
      self.control = try ConnectedSocket(
        to: control, timeToLive: timeToLive, .control, from: ports, multicast: multicast)
    }
    // Those of a source-specific group do not send to it. Where it cannot be joined, the stream goes out all the same.
    if address.isMulticast, !address.isSourceSpecific {
      group = try? GroupSocket(joining: control ?? address, interface: multicast.interface, mayWait: true)
    }
    // Without a route it is joined with the first packet that has one.
    isLost = group?.hasJoined == false
    // At once, so that what the viewer says first is heard.
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
    if takesGroups, !frame.messages.isBoundary(packets.lowerBound) { takesGroups = false }
    while progress.next < packets.upperBound, progress.end == .done {
      let rest = progress.next..<packets.upperBound
      let messages = takesGroups ? frame.messages.grouped(rest) : frame.messages.plain(rest)
      send(messages, of: frame, &progress)
    }
    return progress
  }

  /// Sends `messages` until one is refused; a loss or a change of way in `progress` is followed by another call.
  private func send(
    _ messages: UnsafeMutableBufferPointer<nightjar_message>, of frame: OutgoingFrame, _ progress: inout SendProgress
  ) {
    var index = 0
    var refusals = 0
    while index < messages.count {
      let first = progress.next
      func packets(_ message: Int) -> Int {
        takesGroups ? frame.messages.packets(inGroup: message, from: first) : 1
      }
      let sent = nightjar_send_messages(
        media.fileDescriptor, messages.baseAddress.unsafelyUnwrapped + index,
        UInt32(min(frame.messagesAtATime, messages.count - index)))
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
      case EINTR:
        continue
      case ECONNREFUSED where refusals == 0:
        // The answer to an earlier packet, told on this one, which was not sent: send it again.
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
        if takesGroups, packets(0) > 1 {
          // This way out does not cut messages, or not into packets of this size: one by one from here on.
          takesGroups = false
          return
        }
        guard error == EMSGSIZE else { return lose(error, &progress) }
        fallthrough
      case ECONNREFUSED:
        // This packet's fault alone, or a refusal right after a refusal: go on with the next.
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
    // RTCP goes the same way, and what comes to an address that we have no longer is not heard. First, so that it may be
    // tried again no later.
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

  /// Sends one datagram of two parts, a second time where the first only told what had become of an earlier one.
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
    // Unconnected, it would take anybody's; a group is anybody.
    let isConnected = group != nil || (control == nil ? media.isConnected : control?.isConnected == true)
    guard let descriptor = descriptors.input else { return 0 }
    let count = nightjar_receive(descriptor, memory.baseAddress, memory.count)
    // Refused datagrams of ours are told here too; whatever is behind that comes at the next look.
    hasMore = count >= 0
    if count < 0, errno == ECONNREFUSED, control == nil, group == nil { wasRefused = true }
    guard count > 0, count <= memory.count, isConnected else { return 0 }
    let datagram = UnsafeRawBufferPointer(rebasing: memory[..<count])
    if control == nil, RTPMultiplexing(datagram) != .rtcp { return 0 }
    return count
  }

  var losesBursts: Bool { true }

  var framesInFlight: Int { outflow.isEmpty ? 0 : outflow.framesInFlight(unsent: unsentBytes) }

  func willContinue() {
    if !outflow.isEmpty { outflow.willContinue(unsent: unsentBytes) }
  }

  func notePart(isFirst: Bool, isLast: Bool) {
    // A call to the kernel less for each part, where the way was free: what is seen at the end is the frame's then.
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

  /// This side's address of RTP; nil while there is no way out.
  var localAddress: SocketAddress? { media.localAddress }
}

/// Tells from the bytes that a socket still holds how many of the frames given to it are among them.
struct Outflow {
  /// Bytes that each of the last frames added, as the kernel counts them, the newest first.
  private var added: InlineArray<4, Int> = .init(repeating: 0)
  private var before = 0

  /// So much may be there of packets that have left: a network driver may keep the last ones until others come. Such a
  /// packet is not in anybody's way, and frames of one packet each would otherwise seem to wait for ever.
  static let keptBytes = 4096

  /// Whether the socket held nothing when it was last looked at: what it may hold by now belongs to no frame, and there
  /// is no need to ask.
  var isEmpty: Bool { before == 0 }

  /// How many of the last frames have not left whole, where the socket holds `unsent` bytes; 4 stands for more.
  mutating func framesInFlight(unsent: Int) -> Int {
    before = unsent
    var rest = unsent - Self.keptBytes
    for index in added.indices {
      if rest <= 0 { return index }
      rest -= max(1, added[index])
    }
    return added.count
  }

  /// Another part of the last frame is about to be given to the socket, which holds `unsent` bytes. What has left since
  /// the part before is not to be taken off the frame: one that seems small makes what waits seem many frames.
  mutating func willContinue(unsent: Int) { before = unsent }

  /// A frame, or a part of one, was given as a whole to the socket, which holds `unsent` bytes now.
  mutating func notePart(isFirst: Bool, unsent: Int) {
    if isFirst {
      for index in added.indices.dropLast().reversed() { added[index + 1] = added[index] }
      added[0] = 0
    }
    added[0] += max(0, unsent - before)
    before = unsent
  }
}
