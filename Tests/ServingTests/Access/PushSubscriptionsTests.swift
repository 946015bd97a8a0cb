import Delivery
import Foundation
import TestSupport
import Testing

@testable import Serving

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

  @Test func `Browsers and the key outlive the program, and only its user reads them`() throws {
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

  @Test func `There is room for some browsers of each owner, and for some in all`() throws {
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

  @Test func `Browsers that are dropped are gone at once, and from the file soon`() throws {
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

  @Test func `With a new key, browsers of the former one are forgotten`() throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path("state")
    let former = try PushSubscriptions(directory: folder)
    let key = try former.key().publicText
    try former.add(Self.browser(1, of: "anna"))
    try FileManager.default.removeItem(atPath: "\(folder)/\(PushSubscriptions.keyFileName)")
    let later = try PushSubscriptions(directory: folder)
    #expect(try later.list.count == 1 && later.key().publicText != key)
    #expect(try later.list.isEmpty && PushSubscriptions(directory: folder).list.isEmpty)
  }

  @Test func `Damaged lines are passed over, and a file or a key that others may read is refused and kept`() throws {
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
    #expect(error?.description.contains("remove it, and let each browser subscribe again") == true)
  }
}
