package import Platform
import Synchronization

/// The phones that may watch, each by a token of its own, kept in a file of the state directory.
///
/// A phone gets its token for a one-time code (``OneTimeCodes``). The running program alone writes the file: that is why
/// no reload is needed.
package final class Phones: Sendable {
  /// A phone that may watch.
  package struct Phone: Codable, Hashable, Sendable {
    /// The name that its owner gave it.
    package let name: String
    /// The phone's role, as in `view`.
    package let role: String
  }

  /// A phone's log-in, which only the phone keeps.
  package struct Login: Codable, Hashable, Sendable {
    /// The phone's name.
    package let name: String
    /// The phone's role, as in `view`.
    package let role: String
    /// The token, which the phone sends as Bearer.
    package let token: String
  }

  private struct State {
    var tokens: TokensFile
    var codes = OneTimeCodes()
  }

  /// The name of the file in the state directory.
  package static let fileName = "phones"
  /// The most phones.
  package static let limit = 200

  private let path: String
  private let state: Mutex<State>
  private let changes = Atomic(0)

  /// Reads the file; without one there are no phones.
  ///
  /// - Throws: ``TokensFileError``.
  package init(path: String) throws {
    self.path = path
    state = Mutex(State(tokens: try Self.read(path)))
  }

  private static func read(_ path: String) throws -> TokensFile {
    do {
      return try TokensFile(contentsOf: path)
    } catch TokensFileError.file(.missing) {
      return TokensFile()
    }
  }

  /// The phones, in the order in which they came.
  package var list: [Phone] {
    state.withLock { state in
      state.tokens.names.map { Phone(name: "\($0)", role: (state.tokens.role(of: $0) ?? .unnamed).rawValue) }
    }
  }

  /// The number of changes to the phones.
  package var changeCount: Int { changes.load(ordering: .acquiring) }

  /// `true` if there are no phones.
  var isEmpty: Bool { state.withLock { $0.tokens.names.isEmpty } }

  /// Returns the phone that has this token; nil if there is none.
  package func phone(_ token: String) -> TokensFile.Token? {
    state.withLock { state in state.tokens.name(of: token).flatMap { state.tokens[$0] } }
  }

  /// The phone of this name; nil if there is none.
  package subscript(name: UserName) -> TokensFile.Token? { state.withLock { $0.tokens[name] } }

  /// Makes a one-time code for a phone that gets `role`.
  package func makeCode(_ role: Role, at now: Instant = .now()) -> String {
    state.withLock { $0.codes.make(role, at: now) }
  }

  /// Gives a phone its log-in for a one-time code. A name that another phone has gets a number behind it.
  ///
  /// - Throws: ``PhonesError``, ``TokensFileError``. The code is used up in any case.
  package func add(_ requested: UserName, code: String, at now: Instant = .now()) throws -> Login {
    guard let role = state.withLock({ $0.codes.use(code, at: now) }) else { throw PhonesError.code }
    let login = try edit { tokens in
      guard tokens.names.count < Self.limit else { throw PhonesError.tooMany }
      let name = Self.free(requested, among: tokens)
      return Login(name: "\(name)", role: role.rawValue, token: try tokens.make(for: name, role: role))
    }
    return login
  }

  /// Shuts a phone out: its token is void from now on.
  ///
  /// - Throws: ``PhonesError/unknown(_:)``, ``TokensFileError``.
  package func remove(_ name: UserName) throws {
    try edit { tokens in
      guard tokens.remove(name) else { throw PhonesError.unknown("\(name)") }
    }
  }

  private func edit<Result>(_ change: (inout TokensFile) throws -> Result) throws -> Result {
    var edited = TokensFile()
    let result = try TokensFile.edit(path, mayCreate: true) { tokens in
      let result = try change(&tokens)
      edited = tokens
      return result
    }
    state.withLock { $0.tokens = edited }
    changes.add(1, ordering: .releasing)
    return result
  }

  private static func free(_ requested: UserName, among tokens: TokensFile) -> UserName {
    guard tokens.role(of: requested) != nil else { return requested }
    for number in 2...(limit + 1) {
      let suffix = "-\(number)"
      let name = try? UserName(requested.description.prefix(UserName.limit - suffix.count) + suffix)
      if let name, tokens.role(of: name) == nil { return name }
    }
    preconditionFailure("\(limit) phones have \(limit + 1) names")
  }
}

/// The reason why a phone gets no log-in, or is not shut out.
package enum PhonesError: Failure, Hashable {
  /// The code is unknown, used or too old.
  case code
  /// There are too many phones.
  case tooMany
  /// There is no phone of this name.
  case unknown(String)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .code: "this code is used, or older than ten minutes: make another one, with nightjar ctl phone add"
    case .tooMany: "there are \(Phones.limit) phones already: remove one, with nightjar ctl phone remove NAME"
    case .unknown(let name): "there is no phone \(name): nightjar ctl phone list shows all"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
    switch self {
    case .code: .noPermission
    case .tooMany: .unavailable
    case .unknown: .noInput
    }
  }
}
