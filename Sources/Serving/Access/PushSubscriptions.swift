import CLinux
package import Delivery
import FoundationEssentials
import Glibc
package import Platform
import Synchronization
import TLS

/// The browsers that are told of alerts while their page is closed, and this host's key for their push services, in two files
/// of the state directory.
///
/// The running program alone writes the files: that is why no reload is needed. What is in a file survives `kill -9`.
package final class PushSubscriptions: Sendable {
  /// The names of the files in the state directory.
  package static let (fileName, keyFileName) = ("push-subscriptions", "push-key.pem")
  /// The most browsers, in all and of one owner.
  package static let (limit, ownerLimit) = (40, 8)
  /// The largest files in bytes.
  private static let (sizeLimit, keySizeLimit) = (256 << 10, 4096)

  /// The `POST` requests of one owner that may come at once, and the time after which one more may.
  package static let (burst, pause) = (10, Duration.seconds(6))

  /// A line of the file: JSON, as a browser sends it, the owner, and the mark of the log-in.
  private struct Record: Codable {
    let endpoint: String
    let p256dh: String
    let auth: String
    let owner: String
    let login: String?
  }

  private struct State {
    var list: [PushSubscription]
    /// The browsers that were removed, and that the file may still have.
    var removed: Set<PushSubscription> = []
    var key: VAPIDKey?
    /// The times at which all requests of an owner are forgotten.
    var calm: [String: Instant] = [:]
  }

  private let (path, keyPath): (String, String)
  private let state: Mutex<State>
  /// Held while a file is written, so that readers of the list wait for no disk.
  private let writing = Mutex(())
  private let changes = Atomic(0)
  /// The browsers that were removed because the host has another key.
  private let forgotten = Atomic(0)

  /// Reads the browsers of the file in `directory`; without one there are none. Damaged lines are passed over.
  ///
  /// - Throws: ``PushSubscriptionError``.
  package init(directory: String) throws(PushSubscriptionError) {
    (path, keyPath) = ("\(directory)/\(Self.fileName)", "\(directory)/\(Self.keyFileName)")
    do throws(PrivateFileError) {
      state = Mutex(State(list: try Self.read(PrivateFile(path)).list))
    } catch {
      throw .file(error)
    }
  }

  private static func read(
    _ file: PrivateFile
  ) throws(PrivateFileError) -> (list: [PushSubscription], status: nightjar_file?) {
    let (bytes, status): ([UInt8], nightjar_file)
    do throws(PrivateFileError) {
      (bytes, status) = try file.read(limit: sizeLimit)
    } catch .missing {
      return ([], nil)
    }
    let list = bytes.split(separator: UInt8(ascii: "\n")).compactMap { line -> PushSubscription? in
      guard let record = try? JSONDecoder().decode(Record.self, from: Data(line)) else { return nil }
      return try? PushSubscription(
        endpoint: record.endpoint, publicKey: record.p256dh, secret: record.auth, owner: record.owner,
        login: record.login)
    }
    return (Array(list.prefix(limit)), status)
  }

  /// The browsers, in the order in which they came.
  package var list: [PushSubscription] { state.withLock { $0.list } }

  /// The number of changes to the browsers.
  package var changeCount: Int { changes.load(ordering: .acquiring) }

  /// Returns the number of browsers of this owner.
  package func count(of owner: String) -> Int { state.withLock { $0.list.count { $0.owner == owner } } }

  /// Counts a request of an owner to add a browser. Returns the time until the next one may come; nil if this one may.
  package func delay(of owner: String, at now: Instant) -> Duration? {
    state.withLock { state in
      // Owners have logged in, so that there are not many.
      state.calm = state.calm.filter { $0.value > now }
      let calm = max(state.calm[owner] ?? now, now) + Self.pause
      let excess = calm - (now + Self.pause * Int64(Self.burst))
      guard excess <= .zero else { return excess }
      state.calm[owner] = calm
      return nil
    }
  }

  /// Adds a browser. One that is there with the same endpoint is replaced. Waits for the file system.
  ///
  /// - Throws: ``PushSubscriptionError``; then nothing has changed.
  package func add(_ subscription: PushSubscription) throws(PushSubscriptionError) {
    try edit { list throws(PushSubscriptionError) in
      let index = list.firstIndex { $0.endpoint == subscription.endpoint }
      if let index { list.remove(at: index) }
      guard list.count < Self.limit else { throw .tooMany }
      guard list.count(where: { $0.owner == subscription.owner }) < Self.ownerLimit else { throw .tooManyOfOwner }
      list.insert(subscription, at: index ?? list.count)
    }
  }

  /// Removes the browsers that match. They are told of nothing more, even if the file system refuses the change. Waits for the
  /// file system. Returns their number.
  @discardableResult
  package func remove(where isMeant: (PushSubscription) -> Bool) -> Int {
    guard list.contains(where: isMeant) else { return 0 }
    var count = 0
    do {
      try edit { list in
        count = list.count(where: isMeant)
        list.removeAll(where: isMeant)
      }
    } catch {
      // The next change takes them out of the file. After a restart the push service or the missing owner ends them again.
      count = take(isMeant).count
    }
    return count
  }

  /// Takes the browsers that match out of the list, until the file is written without them, and returns them.
  private func take(_ isMeant: (PushSubscription) -> Bool) -> Set<PushSubscription> {
    let gone = state.withLock { state in
      let gone = Set(state.list.filter(isMeant))
      state.list.removeAll { gone.contains($0) }
      state.removed.formUnion(gone)
      return gone
    }
    if !gone.isEmpty { changes.add(1, ordering: .releasing) }
    return gone
  }

  /// Removes the browsers that match, and returns them at once: a thread of its own writes the file.
  @discardableResult
  package func drop(where isMeant: (PushSubscription) -> Bool) -> Set<PushSubscription> {
    let gone = take(isMeant)
    guard !gone.isEmpty else { return [] }
    // Without a thread they go with the next change, or at the next start.
    _ = try? NamedThread("nj-events") { [self] in try? edit { _ in } }.detach()
    return gone
  }

  /// Removes the browsers of this owner, as ``remove(where:)`` does.
  package func removeAll(of owner: String) -> Int { remove { $0.owner == owner } }

  /// Returns the number of the browsers that were removed since the last call because the host has another key.
  package func takeForgotten() -> Int { forgotten.exchange(0, ordering: .relaxed) }

  private func edit(
    _ change: (inout [PushSubscription]) throws(PushSubscriptionError) -> Void
  ) throws(PushSubscriptionError) {
    try writing.withLock { _ throws(PushSubscriptionError) in
      do {
        let file = try PrivateFile(path)
        try file.makeDirectory(mode: 0o700)
        let lock = try FileLock(beside: file)
        defer { withExtendedLifetime(lock) {} }
        // Another program with the same directory may have changed it.
        let (former, status) = try Self.read(file)
        let removed = state.withLock { $0.removed }
        var list = former.filter { !removed.contains($0) }
        try change(&list)
        if list != former { try file.replace(with: Self.bytes(of: list), mode: 0o600, former: status) }
        let isChange = state.withLock { state in
          state.removed.subtract(removed)
          // What was removed meanwhile has a turn of its own.
          list.removeAll { state.removed.contains($0) }
          defer { state.list = list }
          return state.list != list
        }
        if isChange { changes.add(1, ordering: .releasing) }
      } catch let error as PrivateFileError {
        throw .file(error)
      } catch let error as PushSubscriptionError {
        throw error
      } catch {
        throw .key(path: path, reason: "\(error)")
      }
    }
  }

  private static func bytes(of list: [PushSubscription]) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try list.flatMap { one in
      Array(
        try encoder.encode(
          Record(
            endpoint: one.endpoint, p256dh: Base64URL.text(one.publicKey), auth: Base64URL.text(one.secret),
            owner: one.owner, login: one.login))) + [UInt8(ascii: "\n")]
    }
  }

  /// Returns the key of this host, which is made once: mode 0600. Waits for the file system at the first call.
  ///
  /// A key that cannot be read is not replaced: with another key, no browser could be told any more.
  ///
  /// - Throws: ``PushSubscriptionError``.
  package func key() throws(PushSubscriptionError) -> VAPIDKey {
    if let key = state.withLock({ $0.key }) { return key }
    return try writing.withLock { _ throws(PushSubscriptionError) in
      if let key = state.withLock({ $0.key }) { return key }
      do {
        let file = try PrivateFile(keyPath)
        try file.makeDirectory(mode: 0o700)
        let lock = try FileLock(beside: file)
        defer { withExtendedLifetime(lock) {} }
        if let key = try Self.kept(file) {
          state.withLock { $0.key = key }
          return key
        }
        let key = try Self.made(file)
        // Those that have subscribed with a former key can be told no more.
        let (former, status) = try Self.read(PrivateFile(path))
        if !former.isEmpty {
          try PrivateFile(path).replace(with: [], mode: 0o600, former: status)
          state.withLock { ($0.list, $0.removed) = ([], []) }
          forgotten.add(former.count, ordering: .relaxed)
          changes.add(1, ordering: .releasing)
        }
        state.withLock { $0.key = key }
        return key
      } catch let error as PrivateFileError {
        throw .file(error)
      } catch {
        throw .key(path: keyPath, reason: "\(error)")
      }
    }
  }

  private static func kept(_ file: PrivateFile) throws -> VAPIDKey? {
    do {
      return try VAPIDKey(PrivateKey(pem: file.read(limit: keySizeLimit).bytes))
    } catch PrivateFileError.missing {
      return nil
    }
  }

  private static func made(_ file: PrivateFile) throws -> VAPIDKey {
    let key = try VAPIDKey()
    try file.replace(with: Array(key.pem.utf8), mode: 0o600, former: nil)
    return key
  }
}

/// The reason why a browser is not told of alerts while its page is closed.
package enum PushSubscriptionError: Failure, Hashable {
  /// There are too many browsers.
  case tooMany
  /// There are too many browsers of one owner.
  case tooManyOfOwner
  /// A file cannot be read or written.
  case file(PrivateFileError)
  /// The host's key cannot be used.
  case key(path: String, reason: String)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .tooMany: "\(PushSubscriptions.limit) browsers are told of alerts already: end that in another one"
    case .tooManyOfOwner:
      "\(PushSubscriptions.ownerLimit) browsers of this log-in are told of alerts already: end that in another one"
    case .file(let error): "web push: \(error)"
    case .key(let path, let reason):
      "web push: the key \(path) cannot be used: \(reason); remove it, and let each browser subscribe again"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
    switch self {
    case .tooMany, .tooManyOfOwner: .temporary
    case .file(let error): error.kind
    case .key: .data
    }
  }
}
