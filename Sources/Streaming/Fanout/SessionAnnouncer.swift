import CLinux
import Glibc
import Platform
import RTP
import Synchronization

/// Announces destinations on the network (SAP, RFC 2974), on a thread of its own, and withdraws the announcements at
/// the end.
final class SessionAnnouncer: Sendable {
  /// A destination that is announced.
  struct Session: Sendable {
    let id: ViewerID
    /// The group that announcements are sent to.
    let group: SocketAddress
    /// The reach of announcements, and in `multicast` the interface: those of the stream itself.
    let timeToLive: UInt8
    let multicast: MulticastOptions
    /// A closure that returns the present description, from this side's address.
    let describe: @Sendable (ConnectionAddress) -> SessionDescription?
  }

  private enum Order: Sendable {
    case add(Session)
    case remove(ViewerID)
    case end
  }

  private final class Orders: Sendable {
    let list = Mutex<[Order]>([])
    let arrival: Interrupt
    init() throws(SystemFailure) { arrival = try Interrupt() }
  }

  private let orders: Orders
  private let thread: Mutex<NamedThread?>

  /// The interval at which descriptions are checked for changes; a changed one is announced at once.
  private static let lookInterval = Duration.seconds(5)
  /// The shortest wait between two checks.
  private static let shortestWait = Duration.milliseconds(500)
  /// The wait after the network refused an announcement.
  private static let retryInterval = Duration.seconds(10)

  /// Creates an announcer that announces nothing yet.
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread or descriptor left.
  init() throws(SystemFailure) {
    let orders = try Orders()
    self.orders = orders
    thread = Mutex(try NamedThread("nj-announce") { Self.run(orders) })
  }

  deinit { end() }

  /// Begins to announce a session.
  func add(_ session: Session) { order(.add(session)) }

  /// Withdraws the announcement of a session.
  func remove(_ id: ViewerID) { order(.remove(id)) }

  /// Withdraws all announcements, and waits until that is done.
  func end() {
    order(.end)
    thread.withLock { $0 = nil }
  }

  private func order(_ order: Order) {
    orders.list.withLock { $0.append(order) }
    orders.arrival.fire()
  }

  // MARK: The thread

  private static func run(_ orders: Orders) {
    var announced: [Announced] = []
    var nextLook = Instant.zero
    while true {
      let taken = orders.list.withLock { list in
        defer { list = [] }
        return list
      }
      for order in taken {
        switch order {
        case .add(let session): announced.append(Announced(session))
        case .remove(let id):
          for item in announced where item.session.id == id { item.takeBack() }
          announced.removeAll { $0.session.id == id }
        case .end:
          for item in announced { item.takeBack() }
          return
        }
      }
      let now = Instant.now()
      // Not at each received announcement: to look for the route costs system calls.
      if !taken.isEmpty || now >= nextLook {
        for item in announced { item.announceIfDue(at: now) }
        nextLook = now + lookInterval
        for item in announced { nextLook = min(nextLook, max(item.deadline, now + shortestWait)) }
      }
      wait(for: announced, orders, until: announced.isEmpty ? nil : nextLook)
    }
  }

  /// Sleeps until there is a request, or `deadline`. Receives the announcements of others meanwhile.
  private static func wait(for announced: [Announced], _ orders: Orders, until deadline: Instant?) {
    var descriptors = [pollfd(fd: orders.arrival.fileDescriptor, events: Int16(POLLIN), revents: 0)]
    for item in announced {
      descriptors.append(pollfd(fd: item.listener ?? -1, events: Int16(POLLIN), revents: 0))
    }
    let rest = deadline.map { max(0, ($0 - .now()).nanoseconds) } ?? 3_600_000_000_000
    _ = nightjar_poll(&descriptors, numericCast(descriptors.count), rest)
    if descriptors[0].revents != 0 { orders.arrival.clear() }
    // Under a flood, datagrams are read only at this interval.
    if announced.count(where: { $0.hear() }) > 0 { usleep(10_000) }
  }

  /// One session, with its sockets. Used by the thread alone.
  private final class Announced {
    let session: Session
    private var ears: GroupSocket?
    private var schedule = AnnouncementSchedule()
    private var retry = Instant.zero
    private var wasAway = false
    /// The description that was announced last, and the address that announced it.
    private var current: (text: String, origin: [UInt8])?

    /// The datagrams that are read at a time: a flood is not read to its end.
    private static let datagramsAtATime = 32

    init(_ session: Session) {
      self.session = session
      // Without this socket the session counts no other announcers, and announces as often as a single one may.
      ears = try? GroupSocket(joining: session.group, interface: session.multicast.interface)
      wasAway = listener == nil
    }

    var listener: CInt? {
      switch ears {
      case .some(let ears): ears.fileDescriptor
      case .none: nil
      }
    }

    /// Notes the announcements of others. Returns `true` if there may be more of them.
    func hear() -> Bool {
      guard let listener else { return false }
      let now = Instant.now()
      return withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 8) { memory in
        for _ in 0..<Self.datagramsAtATime {
          // A longer datagram is cut: the header is all that matters.
          let count = nightjar_receive(listener, memory.baseAddress, memory.count)
          guard count >= 0 else { return false }
          let bytes = UnsafeRawBufferPointer(rebasing: memory[..<min(count, memory.count)])
          guard let packet = AnnouncementPacket(parsing: bytes),
            packet.identifier.origin != current?.origin
          else { continue }
          schedule.note(packet, at: now)
        }
        return true
      }
    }

    /// The time of the next announcement.
    var deadline: Instant {
      max(retry, schedule.deadline(bytes: current.map { $0.text.utf8.count + 24 } ?? 0) ?? .zero)
    }

    /// Announces the session if that is due, or if the description has changed.
    func announceIfDue(at now: Instant) {
      guard now >= retry else { return }
      let isDue = now >= deadline
      guard let way = Way(to: session) else {
        retry = now + SessionAnnouncer.retryInterval
        wasAway = true
        return
      }
      if wasAway { listenAgain() }
      guard let text = session.describe(way.origin)?.text else { return }
      guard isDue || text != current?.text else { return }
      // Another description under another hash replaces the former one (section 5).
      guard way.send(AnnouncementPacket.bytes(announcing: text, from: way.originBytes)) else {
        retry = now + SessionAnnouncer.retryInterval
        return
      }
      if text != current?.text { schedule.begin() }
      current = (text, way.originBytes)
      var generator = SystemRandomNumberGenerator()
      schedule.sent(at: now, using: &generator)
    }

    /// Joins the group where that failed before, or where the membership was lost with the interface.
    private func listenAgain() {
      wasAway = false
      let interface = session.multicast.refreshed().interface
      if listener == nil { ears = try? GroupSocket(joining: session.group, interface: interface) }
      ears?.joinAgain(interface: interface)
    }

    /// Withdraws the announcement.
    func takeBack() {
      guard let current, let way = Way(to: session) else { return }
      _ = way.send(AnnouncementPacket.bytes(announcing: current.text, from: current.origin, isDeletion: true))
    }
  }

  /// A socket to a session's group, and this side's address there.
  private struct Way: ~Copyable {
    private let descriptor: FileDescriptor
    let origin: ConnectionAddress
    let originBytes: [UInt8]

    /// Connects to the group. Nil where there is no route, or this side has no address, at the moment.
    init?(to session: Session) {
      // The interface may have come back under another index.
      let multicast = session.multicast.refreshed()
      let group = session.group.with(interface: multicast.interface)
      guard let socket = try? FileDescriptor(from: "socket", { nightjar_udp_socket(group.family) }) else { return nil }
      let option = group.isIPv6 ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL
      let level = CInt(group.isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP)
      guard (try? socket.set(level, option, CInt(session.timeToLive))) != nil,
        (try? multicast.apply(to: socket, isIPv6: group.isIPv6)) != nil,
        group.withPointer({ connect(socket.number, $0, group.length) }) == 0,
        let local = SocketAddress(localOf: socket.number), !local.isUnspecified || multicast.isLoopback,
        let origin = ConnectionAddress(local.text)
      else { return nil }
      descriptor = socket
      self.origin = origin
      originBytes = local.networkBytes
    }

    func send(_ bytes: [UInt8]) -> Bool {
      Glibc.send(descriptor.number, bytes, bytes.count, 0) == bytes.count
    }
  }
}
