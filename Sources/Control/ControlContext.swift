import Credentials
import HTTPTypes
import Hummingbird
import Media

/// A request on its way: by whom, and what the answer may have in it.
struct ControlContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// How the client is connected, and who has logged in.
  var peer = ViewerPeer(.unix)
  /// Who asks. Nobody may do anything until it is known.
  var requester = Requester(name: "nobody", role: .read, roleCommand: nil)
  /// Where from, for the log: an address, or a process of this machine.
  var place = "nowhere"
  /// Where changes, refusals, and viewers who come and go are told.
  var events: ControlEvents?
  /// Whether nobody but the client can read the answer.
  var mayGetKeys = true
  /// Whether the page that asks may show the answer, wherever it is from: it is of this machine, or has a token.
  var isForAnyPage = false
  /// What the client may do now, as long as it is there; nil for nothing. An answer without an end ends where that is not
  /// enough.
  var roleOfNow: @Sendable () -> Role? = { nil }
  /// Counts an answer without an end as long as its connection lasts; why there may not be another.
  var admitStream: @Sendable () -> Refusal? = { nil }

  init(source: Source) {
    coreContext = .init(source: source)
  }

  /// Whether the client is there and may still do what `role` allows.
  func isStillAllowed(_ role: Role) -> Bool { roleOfNow().map { $0 >= role } ?? false }

  /// - Throws: where the client has a lesser role; then nothing of the request's body is read.
  func require(_ role: Role) throws(Refusal) {
    guard requester.role < role else { return }
    events?.lacksRole(requester.name, at: place, needed: role)
    throw .lacksRole(requester, needed: role)
  }
}

extension RouterMethods<ControlContext> {
  /// Adds what those may ask for who have `role`: every route of the API is added by this.
  func add(
    _ method: HTTPRequest.Method, _ path: RouterPath, for role: Role,
    _ answer: @escaping @Sendable (Request, ControlContext) async throws -> Response
  ) {
    on(path, method: method) { request, context in
      try context.require(role)
      return try await answer(request, context)
    }
  }

  /// Adds what changes something: it is told who has done it, from where, and what.
  ///
  /// - Parameter answer: carries out the request. It gives `what` the change in words, as soon as it knows it.
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
                path: String(request.uri.path.prefix(80)), what: String(what.prefix(ControlChange.limit)),
                isDone: isDone)))
        }
      }
      let response = try await answer(request, context) { what = $0 }
      isDone = true
      return response
    }
  }
}

extension Refusal {
  fileprivate static func lacksRole(_ requester: Requester, needed: Role) -> Refusal {
    let mend = requester.roleCommand.map { "; \($0) \(needed.rawValue) gives it, after nightjar ctl reload" } ?? ""
    return Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "\(requester.name) has the role \(requester.role.rawValue), and this needs \(needed.rawValue)\(mend)",
        kind: .noPermission, field: "role", value: requester.role.rawValue, limit: needed.rawValue))
  }
}
