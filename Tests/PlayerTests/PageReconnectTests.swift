import Foundation
import TestSupport
import Testing

extension TwoNetworks {
  /// Has Chromium watch the page from the far network, while the program is in the near one.
  ///
  /// - Parameter client: The script in Clients that drives Chromium, and its arguments.
  /// - Returns: The JSON that the client prints.
  fileprivate static func watchPage(_ client: String, environment: [String: String] = [:]) throws -> Data {
    let directory = try TemporaryDirectory()
    try UsersFile.add("anna", "correct horse", in: directory)
    // Debian's chromedriver and Chromium are where the browser is; the program's namespace is known by its process.
    let script = """
      cd '\(directory.url.path)'
      near=$$; export near
      far="/usr/bin/python3 '\(PageFaults.folder)'/\(client) > told.json 2> far.err"; export far
      \(TwoNetworks.setup)
      '\(nightjarPath)' stream --encoder x264 --source test --size 320x240 --audio test \
        --control none --https 10.9.0.1:8443 --users users 2> near.err & program=$!
      wait $far_id
      status=$?
      kill $program
      wait $program
      cat far.err near.err >&2
      exit $status
      """
    let own = ["STATE_DIRECTORY": directory.path("state"), "HOME": directory.url.path, "NIGHTJAR_WEBRTC_PORT": "0"]
    let result = try Subprocess.run(
      ["unshare", "-rn", "sh", "-c", script], in: directory, environment: own.merging(environment) { $1 }, limit: 240)
    try #require(result.status == 0, "\(result.error.suffix(3000))")
    return try Data(contentsOf: URL(fileURLWithPath: directory.path("told.json")))
  }
}

/// The page on a network that lets no UDP through: Chromium is in one network namespace, the program in another.
@Suite(
  .enabled(if: TwoNetworks.hasRules, "needs x264, user namespaces, veth, tc with its tbf, and ip rules of protocols"))
struct PageBlockedTests {
  /// The output of page-blocked.py.
  private struct Told: Decodable {
    /// The protocol of the chosen pair, and those that the program offered.
    let taken: String
    let offered: [String]
    let pictures: Int
    let blocked: Bool
  }

  @Test func `where the network lets no UDP through, the page plays by TCP`() throws {
    let told = try JSONDecoder().decode(
      Told.self, from: TwoNetworks.watchPage("page-blocked.py", environment: ["NIGHTJAR_WEBRTC_PORT": "8189"]))
    #expect(told.blocked && told.offered == ["tcp", "udp"], "\(told)")
    #expect(told.taken == "tcp" && told.pictures > 20, "\(told)")
  }
}

/// The page on a network that is dead for half a minute: Chromium is in one network namespace, the program in another.
@Suite(.serialized, .enabled(if: TwoNetworks.isPossible, "needs x264, user namespaces, veth, and tc with its tbf"))
struct PageReconnectTests {
  /// The output of page-outage.py, in seconds.
  private struct Told: Decodable {
    /// From the end of the outage until pictures and sound come again.
    let picture: Double
    let sound: Double
    /// From the last picture until the alarm rings.
    let alarm: Double
    let causes: [String]
  }

  /// Runs the outage. `down` and `up` run where the program is.
  private func outage(seconds: Int, down: String, up: String) throws -> Told {
    try JSONDecoder().decode(
      Told.self, from: TwoNetworks.watchPage("page-outage.py \(seconds)", environment: ["down": down, "up": up]))
  }

  /// A link that is down, of which the browser's system knows; and a network that swallows packets, of which nobody
  /// tells it.
  @Test(arguments: [
    ("ip link set v0 down", "ip link set v0 up"),
    ("ip route add blackhole 10.9.0.2/32", "ip route del blackhole 10.9.0.2/32"),
  ])
  func `picture and sound come back by themselves after the network was dead`(down: String, up: String) throws {
    let told = try outage(seconds: runsLong ? 30 : 8, down: down, up: up)
    print("outage, \(down): \(told)")
    // Two seconds are the goal, and five for the alarm; ten times that for a machine that is busy.
    #expect(told.picture < 20 && told.sound < 20, "\(told)")
    #expect(told.alarm > 0 && told.alarm < 50, "\(told)")
    let expected = ["The camera's computer does not answer.", "This device has no network."]
    #expect(told.causes.contains { expected.contains($0) }, "\(told)")
  }
}
