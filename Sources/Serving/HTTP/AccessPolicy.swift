import Glibc
import HTTPTypes
import Hummingbird
import NIOCore
import NIOPosix
import Platform
import Streaming

/// The clients that a server admits, and what each may do.
protocol AccessPolicy: Sendable {
  /// The events of the server.
  var events: ControlEvents { get }
  /// `true` if a new client takes the place of an idle one where the connections are full.
  var closesIdleClients: Bool { get }
  /// Returns the transport and address of a client.
  func peer(of channel: any Channel) -> ViewerPeer
  /// Returns the network that a connection is counted for; empty for a client of this machine's own socket.
  func network(of channel: any Channel) -> [UInt8]
  /// Returns the answer to a client that may not even send a request; nil if it may.
  func refusal(of channel: any Channel) throws -> RefusalHandler?
  /// Enters the client of a request and its role, now and later, into `context`. Returns a refusal if the request is not
  /// carried out; its time has come then.
  ///
  /// - Throws: an error if the connection or the server ends meanwhile.
  func admit(
    _ request: Request, on channel: any Channel, _ context: inout ControlContext
  ) async throws -> HTTPRefusal?
  /// Sets the users and tokens that are admitted.
  func set(users: UsersFile?, tokens: TokensFile?)
  /// Forgets a connection that has ended.
  func forget(_ connection: ObjectIdentifier)
}

extension AccessPolicy {
  var closesIdleClients: Bool { true }
  // A peer that has already left has no address and does no harm.
  func network(of channel: any Channel) -> [UInt8] { channel.peerAddress?.network ?? [] }
  func refusal(of channel: any Channel) throws -> RefusalHandler? { nil }
}

/// The access to a Unix socket: its owner and the members of a group may do everything.
struct GroupAccess: AccessPolicy {
  let group: gid_t
  let events = ControlEvents()
  /// Clients of the control socket are this host's own, and wait for each other.
  let closesIdleClients = false

  func peer(of channel: any Channel) -> ViewerPeer { ViewerPeer(.unix) }

  func network(of channel: any Channel) -> [UInt8] { [] }

  func refusal(of channel: any Channel) throws -> RefusalHandler? {
    let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      PeerCredentials(socket: $0)
    }
    guard let peer = peer ?? nil, peer.mayUse(group: group) else { return .anotherUser }
    return nil
  }

  func admit(
    _ request: Request, on channel: any Channel, _ context: inout ControlContext
  ) async throws -> HTTPRefusal? {
    context.requester = try await channel.localRequester(of: request)
    context.place = "the control socket"
    context.roleOfNow = { channel.isActive ? .control : nil }
    context.roleAfterwards = { .control }
    return nil
  }

  func set(users: UsersFile?, tokens: TokensFile?) {}

  func forget(_ connection: ObjectIdentifier) {}
}

extension RequestAuthenticator: AccessPolicy {
  func peer(of channel: any Channel) -> ViewerPeer {
    ViewerPeer(
      .https, address: channel.remoteAddress?.ipAddress, port: channel.remoteAddress?.port, isEncrypted: true)
  }

  func admit(
    _ request: Request, on channel: any Channel, _ context: inout ControlContext
  ) async throws -> HTTPRefusal? {
    let question = try channel.question(of: request)
    let count = changeCount
    let answer = check(question, at: .now())
    channel.unlessActive { forget(question.connection) }
    context.take(answer, of: question)
    let role = roleOfNow(for: question, context.requester.role, since: count)
    if request.uri.queryParameters["token"] != nil { context.isForAnyPage = true }
    let roleOfNow: @Sendable () -> Role? = { [self] in
      let role = role()
      channel.unlessActive { forget(question.connection) }
      return role
    }
    context.roleAfterwards = roleOfNow
    context.roleOfNow = { roleOfNow().flatMap { channel.isActive ? $0 : nil } }
    if let refusal = try await channel.wait(for: answer) { return refusal }
    return context.renew(role())
  }
}

extension ReadingAuthenticator: AccessPolicy {
  func peer(of channel: any Channel) -> ViewerPeer {
    ViewerPeer(.http, address: channel.remoteAddress?.ipAddress, port: channel.remoteAddress?.port)
  }

  func admit(
    _ request: Request, on channel: any Channel, _ context: inout ControlContext
  ) async throws -> HTTPRefusal? {
    let question = try channel.question(of: request)
    // A forwarded port of this machine passes on any Host without a sign of it.
    context.mayGetKeys = question.isFromHere && !hasUsers
    let answer = check(question, at: .now())
    channel.unlessActive { forget(question.connection) }
    context.take(answer, of: question)
    context.roleOfNow = { [self] in channel.isActive ? roleOfNow(for: question) : nil }
    context.roleAfterwards = { question.isFromHere ? Requester.unknown.role : nil }
    if let refusal = try await channel.wait(for: answer) { return refusal }
    return context.renew(roleOfNow(for: question))
  }

  func set(users: UsersFile?, tokens: TokensFile?) { set(users: users) }
}

extension ControlContext {
  /// Takes over the client of an answer.
  fileprivate mutating func take(_ answer: RequestAuthenticator.Answer, of question: RequestAuthenticator.Question) {
    if case .granted(let requester, _) = answer { self.requester = requester }
    peer.user = answer.user
    place = question.client
  }

  /// Applies the current role, since the answer may have waited; refuses if there is none any more.
  fileprivate mutating func renew(_ role: Role?) -> HTTPRefusal? {
    guard let role else { return .revoked }
    requester.role = role
    return nil
  }
}

extension Channel {
  /// The client's address; nil for a Unix socket and for a client that has left.
  var peerAddress: PeerAddress? { remoteAddress?.ipAddress.flatMap { PeerAddress($0) } }

  /// Returns the request together with its client and connection.
  ///
  /// - Throws: an error if the client has left.
  fileprivate func question(of request: Request) throws -> RequestAuthenticator.Question {
    guard let peer = peerAddress else { throw CancellationError() }
    return RequestAuthenticator.Question(
      request: request, client: remoteAddress?.ipAddress ?? "", peer: peer, connection: ObjectIdentifier(self))
  }

  /// Runs `body` if the connection has ended while it was being noted.
  fileprivate func unlessActive(_ body: () -> Void) {
    if !isActive { body() }
  }

  /// Returns the process at the other end of a Unix socket, as the kernel reports it. A client that changes nothing
  /// stays unnamed.
  fileprivate func localRequester(of request: Request) async throws -> Requester {
    guard request.method != .get, request.method != .head else { return .local("somebody") }
    let peer = try await eventLoop.submit { [self] in
      try pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
        PeerCredentials(socket: $0)
      }
    }.get()
    return .local(peer.flatMap { $0 }.map { "uid \($0.user), pid \($0.process)" } ?? "somebody")
  }

  /// Returns the refusal of a request; nil if the request is carried out. Waits until the time of the answer.
  ///
  /// - Throws: an error if the connection or the server ends meanwhile.
  fileprivate func wait(for answer: RequestAuthenticator.Answer) async throws -> HTTPRefusal? {
    let (refusal, time): (HTTPRefusal?, Instant) =
      switch answer {
      case .granted(_, let time): (nil, time)
      case .refused(let refusal, let time): (refusal, time)
      }
    let rest = time - .now()
    if rest > .zero {
      try await triggerUserOutboundEvent(AnswerDelay(time: .nanoseconds(rest.nanoseconds))).get()
      try await Task.sleep(nanoseconds: UInt64(rest.nanoseconds))
      guard isActive else { throw CancellationError() }
    }
    return refusal
  }
}
