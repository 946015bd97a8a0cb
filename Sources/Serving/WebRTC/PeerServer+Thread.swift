import CLinux
import Glibc
import Platform
import Streaming
import Synchronization
import WebRTC

/// The server's thread, and what it does for the table.
extension PeerServer {
  /// The most datagrams of peers that are taken at a time from a socket, and the most of others, which cost less. A flood of
  /// more costs a part of a processor only, because the thread rests then; what the socket cannot hold meanwhile is lost.
  private static let (datagramsAtATime, unknownAtATime) = (64, 1024)
  private static let rest = Duration.milliseconds(2)
  /// The interval at which is asked whether each browser may still watch, and connections had their time.
  private static let accessInterval = Duration(seconds: 2)
  private static let memoryBytes = 4096

  func run() {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.memoryBytes, alignment: 8)
    defer { memory.deallocate() }
    var nextAccessCheck = Instant.now() + Self.accessInterval
    while !state.withLock({ $0.isOver }) {
      wait(until: nextAccessCheck)
      wake.clear()
      var isFlooded = false
      for socket in sockets where receive(from: socket, into: memory) { isFlooded = true }
      serveConnections(memory)
      var actions = Actions()
      let now = Instant.now()
      state.withLock { state in
        if let deadline = state.table.nextDeadline, deadline <= now {
          state.table.expire(at: now) { actions.append($0, $1) }
        }
      }
      carryOut(actions)
      if now >= nextAccessCheck {
        nextAccessCheck = now + Self.accessInterval
        checkAccess()
        connections.expire(
          at: now, knows: { path in state.withLock { $0.table.knows(path) } }, forget: forget)
      }
      if isFlooded { usleep(useconds_t(Self.rest.nanoseconds / 1000)) }
    }
  }

  /// Ends the sessions whose requester may not watch any more.
  private func checkAccess() {
    let viewers = state.withLock { $0.viewers }
    var actions = Actions()
    for (identity, viewer) in viewers where !viewer.isAllowed() {
      state.withLock { _ = $0.table.end(identity, .notAllowed) { actions.append($0, $1) } }
    }
    carryOut(actions)
  }

  private func wait(until accessCheck: Instant) {
    var deadline = state.withLock { state in
      let deadline = state.table.nextDeadline
      return state.viewers.isEmpty && connections.isEmpty ? deadline : min(deadline ?? accessCheck, accessCheck)
    }
    if let rests = connections.deadline { deadline = min(deadline ?? rests, rests) }
    let rest = deadline.map { max(.zero, $0 - .now()) }
    var list = (sockets.map(\.fileDescriptor) + [wake.fileDescriptor] + connections.descriptors)
      .map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    // Rounded up: the deadline is over then.
    let milliseconds = rest.map { CInt(clamping: ($0.nanoseconds + 999_999) / 1_000_000) } ?? -1
    _ = poll(&list, nfds_t(list.count), milliseconds)
  }

  /// Takes the datagrams that have come. Returns `true` if there may be more.
  private func receive(from socket: PeerSocket, into memory: UnsafeMutableRawBufferPointer) -> Bool {
    var (known, unknown) = (0, 0)
    while known < Self.datagramsAtATime, unknown < Self.unknownAtATime {
      guard let arrival = socket.receive(into: memory) else { return false }
      let path = PeerPath(address: arrival.sender.address, port: arrival.sender.port, local: arrival.local)
      let reception = receive(UnsafeRawBufferPointer(rebasing: memory[..<arrival.count]), from: path)
      if reception == .refused { unknown += 1 } else { known += 1 }
    }
    return true
  }

  private func receive(_ datagram: UnsafeRawBufferPointer, from path: PeerPath) -> PeerTable.Reception {
    // Nobody keeps the pointer.
    nonisolated(unsafe) let datagram = datagram
    var actions = Actions()
    let reception = state.withLock { $0.table.receive(datagram, from: path, at: .now()) { actions.append($0, $1) } }
    carryOut(actions)
    return reception
  }

  /// Accepts connections, takes what has come on them, and sends what waits for room.
  private func serveConnections(_ memory: UnsafeMutableRawBufferPointer) {
    connections.accept(at: .now())
    connections.read(into: memory, receive: receive(_:from:), forget: forget)
    connections.flush()
  }

  /// Tells the table of a path that is closed.
  private func forget(_ path: PeerPath) {
    var actions = Actions()
    state.withLock { $0.table.forget(path) { actions.append($0, $1) } }
    carryOut(actions)
  }

  /// The actions that the table requests. The server carries them out without the table's lock.
  struct Actions {
    var list: [(PeerTable.Identity, PeerSession.Output)] = []

    mutating func append(_ identity: PeerTable.Identity, _ output: PeerSession.Output) {
      list.append((identity, output))
    }
  }

  func carryOut(_ actions: consuming Actions) {
    for (identity, output) in actions.list {
      switch output {
      case .send(let bytes, let path): bytes.withUnsafeBytes { bytes in send(bytes, on: path) }
      case .control(let bytes): viewer(identity)?.receive(control: bytes)
      case .move(let path): if let way = way(path) { viewer(identity)?.move(to: way) }
      case .begin(let keys, let path): begin(identity, keys, on: path)
      case .end(let reason): end(identity, reason)
      }
    }
  }

  private func viewer(_ identity: PeerTable.Identity) -> PeerViewer? { state.withLock { $0.viewers[identity] } }

  private func send(_ datagram: UnsafeRawBufferPointer, on path: PeerPath) {
    switch way(path) {
    case .datagrams(let socket, let address, let source): socket.send(datagram, to: address, from: source)
    case .connection(let connection): connection.send(datagram)
    case nil: break
    }
  }

  /// Returns the way of a path; nil if it is closed, or there is no socket of its family.
  private func way(_ path: PeerPath) -> PeerTransport.Way? {
    switch path.carrier {
    case .datagrams:
      sockets.first { $0.isIPv6 == path.address.isIPv6 }.map {
        .datagrams($0, to: SocketAddress(path.address, port: path.port), from: path.local)
      }
    case .connection(let number): connections.connection(number).map { .connection($0) }
    }
  }

  private func begin(_ identity: PeerTable.Identity, _ keys: PeerKeys, on path: PeerPath) {
    guard let viewer = viewer(identity), let way = way(path) else { return }
    do {
      guard try viewer.begin(keys, way) else { return }
      events.add(.began(viewer.peer, camera: viewer.camera))
    } catch {
      var actions = Actions()
      state.withLock { _ = $0.table.end(identity, .failure("\(error)")) { actions.append($0, $1) } }
      carryOut(actions)
    }
  }

  private func end(_ identity: PeerTable.Identity, _ reason: PeerEnd) {
    let viewer = state.withLock { state in
      let viewer = state.viewers.removeValue(forKey: identity)
      if let viewer { state.names[viewer.name] = nil }
      return viewer
    }
    guard let viewer else { return }
    if let began = viewer.end() {
      events.add(.ended(viewer.peer, camera: viewer.camera, reason, after: .now() - began))
    } else {
      events.add(.failed(viewer.peer, camera: viewer.camera, reason))
    }
  }
}
