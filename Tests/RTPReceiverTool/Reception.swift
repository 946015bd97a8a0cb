import CLinux
import Glibc
import Media
import Platform
import RTP

/// One viewer: two sockets, a receiver, and what is written down about it.
final class Reception {
  private let media: CInt
  private let control: CInt
  private let receiver: RTPReceiver
  private var gaps = GapLedger()
  /// Where the sender hears RTCP; nil before its first packet.
  private var sender: sockaddr_in?
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 8)

  /// When the picture broke, when it was whole again by a key frame, and when one was asked for; seconds on
  /// `CLOCK_MONOTONIC`, at most ``timesLimit`` of each.
  private var brokenAt: [Double] = []
  private var wholeAt: [Double] = []
  private var keyFrameRequestsAt: [Double] = []
  private var isBroken = false
  private static let timesLimit = 10_000

  /// Opens `port` and the next of 127.0.0.1.
  ///
  /// - Parameter asksAgain: `true` if missing packets are asked for by NACK.
  init(port: UInt16, asksAgain: Bool) throws {
    media = try Self.open(port)
    control = try Self.open(port + 1)
    receiver = try RTPReceiver(
      RTPReceiver.Configuration(isMultiplexed: false, retransmission: asksAgain ? .init() : .reorderOnly), at: .now())
  }

  private static func open(_ port: UInt16) throws(RTPReceiverToolError) -> CInt {
    let descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw .socket(port, errorNumber: errno) }
    var size: CInt = 4 << 20
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw .socket(port, errorNumber: errno) }
    return descriptor
  }

  /// Receives until `end`, or until one of `signals` comes.
  func run(until end: Instant, signals: sigset_t) {
    var signals = signals
    var none = timespec()
    while Instant.now() < end, sigtimedwait(&signals, nil, &none) < 0 {
      wait(until: min(end, receiver.nextDeadline, .now() + Duration.milliseconds(100)))
      while let datagram = take(from: media) {
        let now = Instant.now()
        gaps.note(datagram, at: now)
        try? receiver.receive(datagram, at: now) { _ in }
        note(at: now)
      }
      while let datagram = take(from: control) { try? receiver.receiveControl(datagram, at: .now()) }
      let now = Instant.now()
      receiver.poll(at: now) { _ in }
      note(at: now)
      sendFeedback(at: now)
    }
    receiver.finish { _ in }
    // Without BYE the sender would go on to keep things for this viewer.
    send(receiver.writeGoodbye(into: memory, at: .now()))
  }

  private func wait(until deadline: Instant) {
    var descriptors = [
      pollfd(fd: media, events: Int16(POLLIN), revents: 0), pollfd(fd: control, events: Int16(POLLIN), revents: 0),
    ]
    // Rounded up, so that it does not spin before a deadline.
    let rest = max(0, (deadline - .now()).nanoseconds + 999_999) / 1_000_000
    _ = poll(&descriptors, 2, CInt(rest))
  }

  private func take(from descriptor: CInt) -> UnsafeRawBufferPointer? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let count = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        recvfrom(descriptor, memory.baseAddress, memory.count, CInt(MSG_DONTWAIT), $0, &length)
      }
    }
    guard count > 0 else { return nil }
    if sender == nil {
      // RTCP is heard on the port after RTP's.
      if descriptor == media { address.sin_port = (UInt16(bigEndian: address.sin_port) &+ 1).bigEndian }
      sender = address
    }
    return UnsafeRawBufferPointer(rebasing: memory[..<count])
  }

  private func sendFeedback(at now: Instant) {
    while true {
      let asked = receiver.counts.pictureLossesSent
      let count = receiver.writeFeedback(into: memory, at: now)
      guard count > 0 else { return }
      send(count)
      if receiver.counts.pictureLossesSent > asked { Self.append(now, to: &keyFrameRequestsAt) }
    }
  }

  private func send(_ count: Int) {
    guard var address = sender else { return }
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(control, memory.baseAddress, count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  private func note(at now: Instant) {
    guard receiver.needsKeyFrame != isBroken else { return }
    isBroken = receiver.needsKeyFrame
    if isBroken { Self.append(now, to: &brokenAt) } else { Self.append(now, to: &wholeAt) }
    RTPReceiverTool.say(isBroken ? "broken" : "whole")
  }

  private static func append(_ time: Instant, to times: inout [Double]) {
    if times.count < timesLimit { times.append((time - .zero).seconds) }
  }

  /// Everything, as JSON.
  var json: String {
    let counts = receiver.counts
    let numbers: [(String, Int)] = [
      ("packets", gaps.packets), ("missing_at_first", gaps.missing), ("there_within_200_ms", gaps.inTime),
      ("there_later", gaps.late), ("recovered", Int(counts.packetsRecovered)), ("lost", Int(counts.packetsLost)),
      ("nacks", Int(counts.nacksSent)), ("key_frame_requests", Int(counts.pictureLossesSent)),
      ("access_units", Int(counts.accessUnits)), ("access_units_damaged", Int(counts.accessUnitsDamaged)),
    ]
    let times = [
      ("broken_at", brokenAt), ("whole_at", wholeAt), ("key_frame_requests_at", keyFrameRequestsAt),
    ]
    var fields = numbers.map { "\"\($0)\": \($1)" }
    fields += ["\"is_broken\": \(isBroken)", "\"repair_ms_median\": \(gaps.medianDelay.milliseconds)"]
    fields += times.map { "\"\($0)\": [\($1.map { "\($0)" }.joined(separator: ", "))]" }
    return "{" + fields.joined(separator: ", ") + "}"
  }
}

/// The sockets could not be had.
enum RTPReceiverToolError: Error, CustomStringConvertible {
  case socket(UInt16, errorNumber: CInt)

  var description: String {
    switch self {
    case .socket(let port, let errorNumber): "port \(port) of 127.0.0.1: \(String(cString: strerror(errorNumber)))"
    }
  }
}
