import Delivery
import Foundation
import Platform
import Serving
import TestSupport
import Testing

/// The browsers that are told of alerts while their page is closed, and their file.
@Suite struct PushSubscriptionsTests {
  /// RFC 8291, appendix A.
  static let keys = (
    p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth: "BTBZMqHH6r4Tts7J_aSIgg"
  )

  private static func browser(_ number: Int, of owner: String) throws -> PushSubscription {
    try PushSubscription(
      endpoint: "https://push.example.net/\(number)", publicKey: keys.p256dh, secret: keys.auth, owner: owner)
  }

  @Test func `browsers and the key outlive the program, and only its user reads them`() throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path("state")
    let first = try PushSubscriptions(directory: folder)
    #expect(first.list.isEmpty && !FileManager.default.fileExists(atPath: folder))
    let key = try first.key().publicText
    #expect(try first.key().publicText == key)
    let browsers = [try Self.browser(1, of: "anna"), try Self.browser(2, of: "phone bert")]
    for browser in browsers + browsers { try first.add(browser) }
    #expect(first.list == browsers && first.count(of: "anna") == 1)
    // What is there already is no change.
    #expect(first.changeCount == 2)
    let later = try PushSubscriptions(directory: folder)
    #expect(later.list == browsers)
    #expect(try later.key().publicText == key)
    for name in [PushSubscriptions.fileName, PushSubscriptions.keyFileName] {
      let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")[.posixPermissions] as? Int
      #expect(mode == 0o600, "\(name)")
    }
    later.remove { $0.owner == "anna" }
    #expect(later.list == [browsers[1]])
    #expect(try PushSubscriptions(directory: folder).list == [browsers[1]])
  }

  @Test func `there is room for some browsers of each owner, and for some in all`() throws {
    let directory = try TemporaryDirectory()
    let subscriptions = try PushSubscriptions(directory: directory.path("state"))
    for number in 0..<PushSubscriptions.ownerLimit { try subscriptions.add(Self.browser(number, of: "eve")) }
    for number in 100..<600 {
      #expect(throws: PushSubscriptionError.tooManyOfOwner) { try subscriptions.add(Self.browser(number, of: "eve")) }
    }
    // A page that is opened again finds its place.
    try subscriptions.add(Self.browser(3, of: "eve"))
    for number in PushSubscriptions.ownerLimit..<PushSubscriptions.limit {
      try subscriptions.add(Self.browser(number, of: "user\(number % 20)"))
    }
    #expect(throws: PushSubscriptionError.tooMany) { try subscriptions.add(Self.browser(999, of: "zoe")) }
    #expect(subscriptions.list.count == PushSubscriptions.limit)
    #expect(try PushSubscriptions(directory: directory.path("state")).list == subscriptions.list)
  }

  @Test func `an owner adds a few browsers at once, then one each six seconds, and others do not wait for that`() throws
  {
    let directory = try TemporaryDirectory()
    let subscriptions = try PushSubscriptions(directory: directory.path("state"))
    let start = Instant.now()
    func delay(_ owner: String, _ seconds: Double) -> Double? {
      subscriptions.delay(of: owner, at: start + Duration(seconds: seconds))?.seconds
    }
    for _ in 0..<PushSubscriptions.burst { #expect(delay("eve", 0) == nil) }
    #expect(delay("eve", 0) == 6)
    #expect(delay("eve", 4) == 2)
    #expect(delay("anna", 4) == nil)
    #expect(delay("eve", 6) == nil)
    #expect(delay("eve", 6) == 6)
    // A minute later all is forgotten.
    for _ in 0..<PushSubscriptions.burst { #expect(delay("eve", 67) == nil) }
    #expect(delay("eve", 67) == 6)
  }

  @Test func `a browser is told no more once its log-in has another password or token, or is gone`() throws {
    let directory = try TemporaryDirectory()
    func user(_ name: String, _ password: String, role: Role = .view) throws -> UsersFile.User {
      var user = try UsersFile.User(name: UserName(name), password: password)
      user.role = role
      return user
    }
    var users = UsersFile()
    try users.set(user("anna", "correct horse"))
    var tokens = TokensFile()
    _ = try tokens.make(for: UserName("wall"), role: .view)
    let phones = try Phones(path: directory.path("phones"))
    _ = try phones.add(UserName("bert"), code: phones.makeCode(.view))
    func mayTell(_ browser: PushSubscription) -> Bool {
      HTTPServer.Configuration(listeners: [], users: users, tokens: tokens, phones: phones).mayTell(browser)
    }
    func browser(_ requester: Requester?) throws -> PushSubscription {
      let requester = try #require(requester)
      return try PushSubscription(
        endpoint: "https://push.example.net/a", publicKey: Self.keys.p256dh, secret: Self.keys.auth,
        owner: requester.name, login: #require(requester.mark).text)
    }
    let anna = try browser(users[UserName("anna")].map { .user($0) })
    let wall = try browser(tokens[UserName("wall")].map { .token($0) })
    let bert = try browser(phones[UserName("bert")].map { .phone($0) })
    #expect(mayTell(anna) && mayTell(wall) && mayTell(bert))
    // What is kept in the file is what is compared.
    let subscriptions = try PushSubscriptions(directory: directory.path("state"))
    try subscriptions.add(anna)
    #expect(try PushSubscriptions(directory: directory.path("state")).list == [anna])
    #expect(!mayTell(try Self.browser(1, of: "anna")))

    try users.set(user("anna", "correct horse", role: .control))
    #expect(mayTell(anna))
    try users.set(user("anna", "another horse"))
    #expect(!mayTell(anna))
    try users.set(user("anna", "correct horse"))
    #expect(mayTell(anna))
    try users.set(user("anna", "correct horse", role: .read))
    #expect(!mayTell(anna))
    users.remove(try UserName("anna"))
    #expect(!mayTell(anna))
    _ = try tokens.make(for: UserName("wall"), role: .view)
    #expect(!mayTell(wall))
    try phones.remove(UserName("bert"))
    #expect(!mayTell(bert))
    _ = try phones.add(UserName("bert"), code: phones.makeCode(.view))
    #expect(!mayTell(bert))
  }

  @Test func `browsers that are dropped are gone at once, and from the file soon`() throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path("state")
    let subscriptions = try PushSubscriptions(directory: folder)
    let browsers = [try Self.browser(1, of: "anna"), try Self.browser(2, of: "bert")]
    for browser in browsers { try subscriptions.add(browser) }
    subscriptions.drop { $0.owner == "anna" }
    #expect(subscriptions.list == [browsers[1]] && subscriptions.changeCount == 3)
    #expect(try eventually { try PushSubscriptions(directory: folder).list == [browsers[1]] })
    subscriptions.drop { $0.owner == "anna" }
    #expect(subscriptions.changeCount == 3)
  }

  @Test func `browsers that are removed while the file cannot be written do not come back`()
    throws
  {
    let directory = try TemporaryDirectory()
    let folder = directory.path("state")
    let subscriptions = try PushSubscriptions(directory: folder)
    let browsers = try (1...4).map { try Self.browser($0, of: $0 == 1 ? "anna" : "bert") }
    for browser in browsers.prefix(3) { try subscriptions.add(browser) }
    // A file that others may read is neither read nor written.
    let file = "\(folder)/\(PushSubscriptions.fileName)"
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    #expect(subscriptions.remove { $0.owner == "anna" } == 1)
    #expect(subscriptions.drop { $0 == browsers[1] } == [browsers[1]])
    #expect(throws: PushSubscriptionError.self) { try subscriptions.add(browsers[3]) }
    #expect(subscriptions.list == [browsers[2]])
    // The thread of drop may come before or after this.
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    try subscriptions.add(browsers[3])
    #expect(subscriptions.list == [browsers[2], browsers[3]])
    #expect(subscriptions.drop { $0 == browsers[0] || $0 == browsers[1] }.isEmpty)
    #expect(try PushSubscriptions(directory: folder).list == [browsers[2], browsers[3]])
    // One that comes again, as the very same, stays.
    try subscriptions.add(browsers[0])
    try subscriptions.add(Self.browser(5, of: "bert"))
    #expect(subscriptions.list.contains(browsers[0]))
  }

  @Test func `with a new key, browsers of the former one are forgotten`() throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path("state")
    let former = try PushSubscriptions(directory: folder)
    let key = try former.key().publicText
    try former.add(Self.browser(1, of: "anna"))
    try FileManager.default.removeItem(atPath: "\(folder)/\(PushSubscriptions.keyFileName)")
    let later = try PushSubscriptions(directory: folder)
    #expect(try later.list.count == 1 && later.key().publicText != key)
    #expect(try later.list.isEmpty && PushSubscriptions(directory: folder).list.isEmpty)
    #expect(later.takeForgotten() == 1 && later.takeForgotten() == 0)
  }

  @Test func `damaged lines are passed over, and a file or a key that others may read is refused and kept`() throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path("state")
    let subscriptions = try PushSubscriptions(directory: folder)
    // Browsers subscribe with the key.
    let key = try subscriptions.key().publicText
    try subscriptions.add(Self.browser(1, of: "anna"))
    try subscriptions.add(Self.browser(2, of: "anna"))
    let file = URL(fileURLWithPath: "\(folder)/\(PushSubscriptions.fileName)")
    let text = try String(contentsOf: file, encoding: .utf8)
    let lines = text.split(separator: "\n")
    try #require(lines.count == 2)
    let hostile =
      #"{"endpoint":"https://127.0.0.1/","p256dh":"\#(Self.keys.p256dh)","auth":"\#(Self.keys.auth)","owner":"eve"}"#
    let damaged = "nonsense\n\(lines[0])\n\(lines[1].dropLast(20))\n\(hostile)\n\u{FFFD}\n"
    func write(_ text: String, mode: Int = 0o600) throws {
      try Data(text.utf8).write(to: file)
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
    }
    try write(damaged)
    #expect(try PushSubscriptions(directory: folder).list == [Self.browser(1, of: "anna")])
    try write(text, mode: 0o644)
    #expect(throws: PushSubscriptionError.self) { try PushSubscriptions(directory: folder) }
    try write(text)
    let keyFile = "\(folder)/\(PushSubscriptions.keyFileName)"
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: keyFile)
    let next = try PushSubscriptions(directory: folder)
    #expect(next.list.count == 2)
    #expect(throws: PushSubscriptionError.self) { try next.key() }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: keyFile)
    #expect(try next.key().publicText == key)
    try Data("nonsense".utf8).write(to: URL(fileURLWithPath: keyFile))
    let error = #expect(throws: PushSubscriptionError.self) { try PushSubscriptions(directory: folder).key() }
    guard case .key(keyFile, _)? = error else {
      Issue.record("\(error.map { "\($0)" } ?? "the key is taken")")
      return
    }
    #expect(error?.description.hasSuffix("; remove it, and let each browser subscribe again") == true)
  }
}
