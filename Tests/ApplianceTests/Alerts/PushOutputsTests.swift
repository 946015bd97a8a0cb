import Alerts
import Appliance
import Delivery
import Foundation
import Platform
import Serving
import TestSupport
import Testing

/// The ways of alerts to browsers, as the main thread follows them, by a push service that is not ours.
@Suite struct PushOutputsTests {
  /// A push service with one browser behind it, a user of the host, and the ways to that browser.
  private struct Scene {
    let service: PushService
    let directory: TemporaryDirectory
    let history = AlertHistory()
    let counts = DeliveryCounts()
    var users = UsersFile()
    var settings = PushSettings()
    var outputs: PushOutputs

    init(_ answers: String) throws {
      (service, directory) = (try PushService(answers), try TemporaryDirectory())
      let certificate = service.certificate
      outputs = PushOutputs(history, counts, directory: directory.path("state")) { key, contact in
        // OpenSSL reads the variable when a context is made. The tests of a suite run one after the other.
        setenv("SSL_CERT_FILE", certificate, 1)
        defer { unsetenv("SSL_CERT_FILE") }
        var host = try WebPush.Host(key: key, contact: contact, agent: "nightjar/test")
        host.allowsPrivate = true
        return host
      }
      try setPassword("correct horse")
    }

    mutating func setPassword(_ password: String) throws {
      try users.set(UsersFile.User(name: UserName("anna"), password: password))
    }

    /// Adds the browser of the service, by the user's present password. Returns the name of its way in the log.
    @discardableResult
    func subscribe() throws -> String {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(service.subscription.utf8)) as? [String: Any])
      let keys = try #require(object["keys"] as? [String: String])
      let login = try #require(users[UserName("anna")].map { Requester.user($0) })
      let subscriptions = try #require(outputs.subscriptions)
      _ = try subscriptions.key()
      let browser = try PushSubscription(
        endpoint: #require(object["endpoint"] as? String), publicKey: #require(keys["p256dh"]),
        secret: #require(keys["auth"]), owner: login.name, login: login.mark?.text)
      try subscriptions.add(browser)
      return "web push to anna at \(browser.target.authority)"
    }

    func follow(isServing: Bool = true) {
      outputs.follow(settings, isServing ? HTTPServer.Configuration(listeners: [], users: users) : nil)
    }

    /// Follows the browsers as the main thread does, until `condition` is true.
    func comesTrue(_ condition: () throws -> Bool) rethrows -> Bool {
      try eventually(within: 60) {
        follow()
        return try condition()
      }
    }

    @discardableResult
    func begin(_ kind: AlertKind) throws -> UInt64 {
      let condition = AlertCondition(kind, camera: "nursery", since: .now(), text: "noise")
      return try #require(history.record([.begin(condition, suppressed: 0)], isQuiet: false).first).id
    }

    /// The numbers of the alerts that the browser has been told of.
    func told() throws -> [UInt64] {
      let requests = try service.requests()
      #expect(requests.allSatisfy { $0.faults.isEmpty }, "\(requests)")
      return requests.compactMap(\.message?.id)
    }

    /// Ends all ways; `true` once no thread is left.
    func end() -> Bool { eventually(within: 60) { outputs.stop().isEmpty } }

    /// The number of the browsers in the file.
    func stored() throws -> Int { try PushSubscriptions(directory: directory.path("state")).list.count }
  }

  @Test func `a browser is told of each alert once, until the password is another one`() throws {
    var scene = try Scene("201")
    scene.follow()
    // Nobody has subscribed yet.
    try scene.begin(.noise)
    let name = try scene.subscribe()
    scene.follow()
    let first = try scene.begin(.crying)
    #expect(try scene.comesTrue { try scene.told() == [first] })
    // The service notes a message before it answers, and what it has not answered is sent again.
    try #require(eventually { scene.counts[.push].sent == 1 })
    scene.settings.contact = "mailto:anna@example.org"
    scene.follow()
    let second = try scene.begin(.movement)
    #expect(try scene.comesTrue { try scene.told().count >= 2 })
    #expect(try scene.told() == [first, second])
    try #require(eventually { scene.counts[.push].sent == 2 })

    try scene.setPassword("another horse")
    scene.follow()
    try scene.begin(.cameraLost)
    #expect(try eventually { try scene.stored() == 0 })
    #expect(scene.end())
    #expect(try scene.told() == [first, second])
    #expect(scene.counts[.push].sent == 2)
    let lines = scene.outputs.takeReports().map(\.text)
    #expect(lines == ["\(name) is removed: its log-in is gone, or another one"])
    #expect(scene.outputs.takeComplaint() == nil)
  }

  @Test func `the user's end is the end of the browser`() throws {
    var scene = try Scene("201")
    let name = try scene.subscribe()
    let first = try scene.begin(.noise)
    // What comes between the start and the first look is told.
    #expect(try scene.comesTrue { try scene.told() == [first] })
    try #require(eventually { scene.counts[.push].sent == 1 })
    scene.users.remove(try UserName("anna"))
    scene.follow()
    try scene.begin(.crying)
    #expect(try eventually { try scene.stored() == 0 })
    #expect(scene.end())
    #expect(try scene.told() == [first])
    let lines = scene.outputs.takeReports().map(\.text)
    #expect(lines == ["\(name) is removed: its log-in is gone, or another one"])
  }

  @Test func `nobody is told while it is off or no page is served, and later of what comes then`() throws {
    var scene = try Scene("201")
    try scene.subscribe()
    scene.settings.isOn = false
    scene.follow()
    try scene.begin(.noise)
    scene.settings.isOn = true
    scene.follow(isServing: false)
    try scene.begin(.movement)
    scene.follow()
    let last = try scene.begin(.crying)
    #expect(try scene.comesTrue { try !scene.told().isEmpty })
    #expect(scene.end())
    #expect(try scene.told() == [last])
    #expect(try scene.stored() == 1)
  }

  @Test func `a browser that has ended its subscription is forgotten, and the log says so`() throws {
    let scene = try Scene("410")
    let name = try scene.subscribe()
    try scene.begin(.noise)
    #expect(try scene.comesTrue { try scene.stored() == 0 })
    #expect(scene.end())
    #expect(scene.outputs.subscriptions?.list.isEmpty == true)
    let lines = scene.outputs.takeReports().map(\.text)
    let reason = "it answers 410: the browser has ended this subscription, which is removed"
    #expect(lines == ["\(name): an event is lost: \(reason)"])
  }
}
