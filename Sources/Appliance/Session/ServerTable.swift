package import Platform
package import Serving

/// The servers of an appliance, independent of sockets, threads and clocks. The table takes events, and returns their
/// effects, which the run carries out in order. What comes of an effect is another event.
///
/// One rule holds for all servers. A server with another configuration replaces the present one, once a check has shown
/// that it can listen. If it cannot, or does not start, the former configuration applies again, with the new users and
/// tokens. A server that does not run is tried again every ten seconds.
package struct ServerTable: Sendable {
  /// A server.
  package enum Server: Int, CaseIterable, Sendable {
    case rtsp, https, webRTC, http

    /// The server's name in messages.
    var name: String {
      switch self {
      case .rtsp: "RTSP"
      case .https: "HTTPS"
      case .http: "HTTP"
      case .webRTC: "WebRTC"
      }
    }

    /// `true` if clients request reloads by this server. It is replaced only once they have their answer.
    fileprivate var answersReloads: Bool { self == .https }
    /// `true` if the former configuration applies again where another one fails.
    fileprivate var fallsBack: Bool { self != .webRTC }
  }

  /// The configurations of the servers; nil for a server that is not wanted.
  package struct Configurations: Sendable {
    /// The RTSP server.
    package var rtsp: RTSPServerConfiguration?
    /// The HTTP server with TLS.
    package var https: HTTPServer.Configuration?
    /// The server of browsers, which goes with the page.
    var webRTC: PeerServer.Configuration?
    /// The HTTP server without TLS.
    package var http: HTTPServer.Configuration?

    /// Creates configurations; `nil` for a server that is not wanted.
    package init(
      rtsp: RTSPServerConfiguration? = nil, https: HTTPServer.Configuration? = nil,
      webRTC: PeerServer.Configuration? = nil, http: HTTPServer.Configuration? = nil
    ) {
      self.rtsp = rtsp
      self.https = https
      self.webRTC = webRTC
      self.http = http
    }
  }

  /// An event that the table handles.
  package enum Event: Sendable {
    /// The configurations may have changed.
    case configured(Configurations)
    /// The configuration of WebRTC may have changed with that of a page, which has fallen back.
    case configuredPeers(PeerServer.Configuration?)
    /// The addresses of a server were checked; with a reason if it cannot listen there.
    case checked(Server, failure: String?)
    /// A server has started; with a reason if it has not.
    case started(Server, failure: String?)
    /// The clients that requested a reload get their answer within this time.
    case answered(within: Duration)
    /// Time has passed.
    case tick
  }

  /// An effect for the caller to carry out, in order.
  package enum Effect: Equatable, Sendable {
    /// Check that a server can listen at these addresses.
    case check(Server, [TCPListener])
    /// Start a server with its configuration. A present one ends before.
    case start(Server)
    /// End a server.
    case stop(Server)
    /// Give a server that runs the users and tokens of its configuration.
    case setAccess(Server)
    /// Tell of a change, in the answer of a reload.
    case tell(String)
    /// Tell of a failure. If the failure is not new, only the answer of a reload contains it.
    case complain(String, isNew: Bool)
    /// Tell clients which servers there are now.
    case publish
    /// Take the reloads that were requested while a server was due to be replaced.
    case takeReloads
  }

  private struct State: Sendable {
    var isRunning = false
    /// `true` while another configuration is tried.
    var isChanging = false
    /// `true` if the present server ends once clients have their answer.
    var isStale = false
    /// The last failure that was told.
    var complaint: String?
  }

  /// The configurations that apply.
  package private(set) var configurations: Configurations
  /// The configurations that apply again where the present ones fail.
  private var former = Configurations()
  private var states = [State](repeating: State(), count: Server.allCases.count)
  private var exchange: Instant?
  private var nextAttempt: Instant

  /// The interval between attempts to start a server that does not run.
  static let retryInterval = Duration(seconds: 10)

  /// Creates the table for servers none of which runs.
  package init(_ configurations: Configurations = Configurations(), at now: Instant) {
    self.configurations = configurations
    nextAttempt = now + Self.retryInterval
  }

  /// `true` while a server is due to be replaced. Until then no reload begins.
  package var isExchanging: Bool { exchange != nil }

  /// The time of the next ``Event/tick``; nil if none is due. Attempts to start a server need no exact time.
  package var deadline: Instant? { exchange }

  /// Takes an event, and returns its effects.
  package mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
    switch event {
    case .configured(let new):
      former = configurations
      configurations = new
      return follow(.rtsp, \.rtsp) + follow(.https, \.https) + follow(.webRTC, \.webRTC) + follow(.http, \.http)
    case .configuredPeers(let new):
      guard new != configurations.webRTC else { return [] }
      former.webRTC = configurations.webRTC
      configurations.webRTC = new
      return follow(.webRTC, \.webRTC)
    case .checked(let server, let failure?): return notChanged(server, failure)
    case .checked(let server, nil): return server.answersReloads ? outdate(server) : change(server)
    case .started(let server, let failure?): return failed(server, failure)
    case .started(let server, nil): return started(server)
    case .answered(let time):
      if states.contains(where: \.isStale) { exchange = now + time }
      return []
    case .tick: return tick(at: now)
    }
  }

  // MARK: Changes

  /// Follows another configuration of a server.
  private mutating func follow<Configuration: ServedConfiguration>(
    _ server: Server, _ path: KeyPath<Configurations, Configuration?>
  ) -> [Effect] {
    let isRunning = self[server].isRunning
    guard let new = configurations[keyPath: path] else {
      guard isRunning else { return [] }
      let told = Effect.tell("\(server.name) ended")
      if server.answersReloads {
        self[server].isStale = true
        return [told]
      }
      self[server].isRunning = false
      return [.stop(server), told]
    }
    let old = former[keyPath: path]
    let changes = old.map(new.accessChanges) ?? []
    var effects: [Effect] = isRunning && !changes.isEmpty ? [.setAccess(server)] : []
    if isRunning, let old, new.isServedAlike(old) {
      let words = changes.joined(separator: " and ")
      if !changes.isEmpty { effects.append(.tell("\(words)\(server == .rtsp ? "" : " of \(server.name)") changed")) }
      return effects
    }
    // A server that works must not end for one that cannot start. The former server's own ports are no obstacle.
    let listeners = new.listeners.filter { listener in
      old?.listeners.contains { $0.port == listener.port } != true
    }
    return effects + [.check(server, listeners)]
  }

  /// Replaces a server, which the check has shown to be possible.
  private mutating func change(_ server: Server) -> [Effect] {
    self[server].isChanging = true
    return [.start(server)]
  }

  /// Lets a server be replaced once clients have their answer.
  private mutating func outdate(_ server: Server) -> [Effect] {
    self[server].isStale = true
    return [.tell("\(server.name) restarts")]
  }

  private mutating func started(_ server: Server) -> [Effect] {
    let wasChanging = self[server].isChanging
    // Browsers notice only where they had a server.
    let isTold = wasChanging && !server.answersReloads && (server != .webRTC || former.webRTC != nil)
    self[server] = State(isRunning: true)
    return (isTold ? [.tell("\(server.name) restarted")] : []) + [.publish]
  }

  private mutating func failed(_ server: Server, _ failure: String) -> [Effect] {
    self[server].isRunning = false
    if self[server].isChanging, server.fallsBack { return notChanged(server, failure) }
    self[server].isChanging = false
    defer { self[server].complaint = failure }
    return [.complain(failure, isNew: self[server].complaint != failure), .publish]
  }

  /// Lets the former configuration apply again.
  private mutating func notChanged(_ server: Server, _ failure: String) -> [Effect] {
    self[server].isChanging = false
    let complaint = Effect.complain("\(server.name) is not changed: \(failure)", isNew: true)
    let hasFormer =
      switch server {
      case .rtsp: fallBack(\.rtsp)
      case .https: fallBack(\.https)
      case .http: fallBack(\.http)
      case .webRTC: fallBack(\.webRTC)
      }
    return [complaint] + (hasFormer && !self[server].isRunning ? [.start(server)] : [])
  }

  /// Returns `false` if there was no former configuration.
  private mutating func fallBack<Configuration: ServedConfiguration>(
    _ path: WritableKeyPath<Configurations, Configuration?>
  ) -> Bool {
    guard var old = former[keyPath: path] else { return false }
    // The new users apply in any case.
    if let new = configurations[keyPath: path] { old.takeAccess(of: new) }
    configurations[keyPath: path] = old
    return true
  }

  // MARK: Time

  private mutating func tick(at now: Instant) -> [Effect] {
    var effects: [Effect] = []
    if let exchange, now >= exchange {
      self.exchange = nil
      for server in Server.allCases where self[server].isStale {
        self[server].isStale = false
        if isWanted(server) {
          effects += change(server)
        } else {
          self[server].isRunning = false
          effects += [.stop(server), .publish]
        }
      }
      effects.append(.takeReloads)
    }
    guard now >= nextAttempt else { return effects }
    nextAttempt = now + Self.retryInterval
    for server in Server.allCases where isWanted(server) {
      let state = self[server]
      if !state.isRunning, !state.isChanging, !state.isStale { effects.append(.start(server)) }
    }
    return effects
  }

  /// Returns `true` if the configuration requests the server.
  package func isWanted(_ server: Server) -> Bool {
    switch server {
    case .rtsp: configurations.rtsp != nil
    case .https: configurations.https != nil
    case .http: configurations.http != nil
    case .webRTC: configurations.webRTC != nil
    }
  }

  private subscript(server: Server) -> State {
    get { states[server.rawValue] }
    set { states[server.rawValue] = newValue }
  }
}
