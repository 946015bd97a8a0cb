import HTTPTypes
import Hummingbird
import Platform
import Streaming

/// A request in progress: its client, and the permitted contents of its answer.
struct ControlContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The client's connection, and the user that has logged in.
  var peer = ViewerPeer(.unix)
  /// The requester. A client may do nothing until its requester is known.
  var requester = Requester(name: "nobody", role: .read, roleCommand: nil)
  /// The place that the request comes from, for the log: an address, or a process of this machine.
  var place = "nowhere"
  /// The log of changes, of refusals, and of viewers that join and leave.
  var events: ControlEvents?
  /// `true` if only the client can read the answer.
  var mayGetKeys = true
  /// `true` if the requesting page may show the answer, whatever its origin: the page is of this machine, or has a
  /// token.
  var isForAnyPage = false
  /// Returns the client's current role while it is connected; nil if it has none. An endless answer ends if that role
  /// is not enough.
  var roleOfNow: @Sendable () -> Role? = { nil }
  /// Returns the client's current role, whether it is connected or not; nil if it has none. What outlasts the connection
  /// ends if that role is not enough.
  var roleAfterwards: @Sendable () -> Role? = { nil }
  /// Counts an endless answer as long as its connection lasts; returns a refusal if there may not be another.
  var admitStream: @Sendable () -> HTTPRefusal? = { nil }
  /// Lets the kernel, and this program, keep at most so many unsent bytes each for the connection: what is written
  /// beyond them waits.
  var keepUnsent: @Sendable (_ bytes: Int) async -> Void = { _ in }

  init(source: Source) {
    coreContext = .init(source: source)
  }

  /// Returns `true` if the client is connected and still has `role`.
  func isStillAllowed(_ role: Role) -> Bool { roleOfNow().map { $0 >= role } ?? false }

  /// Requires a role of the client for `request`.
  ///
  /// - Throws: ``HTTPRefusal`` if the client has a lesser role; then nothing of the request's body is read.
  func require(_ role: Role, for request: Request) throws(HTTPRefusal) {
    guard requester.role < role else { return }
    events?.lacksRole(
      requester.name, at: place, order: "\(request.method.rawValue) \(ControlChange.path(of: request))", needed: role)
    throw .lacksRole(requester, needed: role)
  }
}

extension RouterMethods<ControlContext> {
  /// Adds a route for clients that have `role`: every route of the API is added by this function.
  func add(
    _ method: HTTPRequest.Method, _ path: RouterPath, for role: Role,
    _ answer: @escaping @Sendable (Request, ControlContext) async throws -> Response
  ) {
    on(path, method: method) { request, context in
      try context.require(role, for: request)
      return try await answer(request, context)
    }
  }

  /// Adds a route that changes something. Each change is reported with its requester, its place and its description.
  ///
  /// - Parameter answer: carries out the request. It passes the change in words to `what`, as soon as it knows it.
  func addChange(
    _ method: HTTPRequest.Method, _ path: RouterPath,
    _ answer:
      @escaping @Sendable (Request, ControlContext, _ what: (String) -> Void) async throws -> Response
  ) {
    add(method, path, for: .control) { request, context in
      var what: String?
      var isDone = false
      defer {
        if let what {
          context.events?.add(
            .changed(
              ControlChange(
                who: context.requester, from: context.place, method: request.method.rawValue,
                path: ControlChange.path(of: request), what: String(what.prefix(ControlChange.limit)),
                isDone: isDone)))
        }
      }
      let response = try await answer(request, context) { what = $0 }
      isDone = true
      return response
    }
  }
}

extension ControlChange {
  /// Returns the path for the log: without the query, which may have a token, and of a readable length.
  fileprivate static func path(of request: Request) -> String { String(request.uri.path.prefix(80)) }
}

extension HTTPRefusal {
  fileprivate static func lacksRole(_ requester: Requester, needed: Role) -> HTTPRefusal {
    let mend = requester.roleCommand.map { "; \($0) \(needed.rawValue) gives it" } ?? ""
    return HTTPRefusal(
      status: .forbidden,
      failure: ControlFailure(
        "\(requester.name) has the role \(requester.role.rawValue), and this needs \(needed.rawValue)\(mend)",
        kind: .noPermission, field: "role", value: requester.role.rawValue, limit: needed.rawValue))
  }
}
