import Foundation
import TestSupport
import Testing

/// Web Push of the whole program, to a push service with a public address, in a network of its own.
@Suite struct PushTests {
  /// An address that no network here has, and that counts as one of the internet.
  private static let address = "198.20.0.1"

  private static let isPossible: Bool = {
    guard let directory = try? TemporaryDirectory() else { return false }
    let result = try? Subprocess.run(
      ["unshare", "-rn", "sh", "-c", "ip link set lo up && ip addr add \(address)/32 dev lo"], in: directory)
    return result?.status == 0
  }()

  @Test(.enabled(if: isPossible, "needs user namespaces"))
  func `an alert reaches the closed page, also after kill -9, and not once the user is gone`() throws {
    let directory = try TemporaryDirectory()
    let identity = try PushService.identity(for: "IP:\(Self.address)", in: directory)
    try FileManager.default.createDirectory(atPath: directory.path("got"), withIntermediateDirectories: true)
    let script = """
      cd '\(directory.url.path)'
      ip link set lo up
      ip addr add \(Self.address)/32 dev lo || exit 90
      export STATE_DIRECTORY="$PWD/state" SSL_CERT_FILE='\(identity[0])'
      python3 '\(PushService.script)' \(Self.address) 8444 got 201 '\(identity[0])' '\(identity[1])' > service &
      service=$!
      trap 'kill $service $stream 2> /dev/null' EXIT
      for name in anna bert; do echo 'correct horse' | '\(nightjarPath)' user add $name --users users > /dev/null || exit 91; done
      start() {
        log=$1
        shift
        '\(nightjarPath)' stream "$@" --source test --size 640x360 --audio none \
          --rtsp 127.0.0.1:8554 --always-encode --events-file none \
          --https 127.0.0.1:8443 --webrtc-port 0 --users users --control none --web-push-contact anna@example.org 2> $log &
        stream=$!
        for i in $(seq 600); do grep -q '^https ' $log && return; sleep 0.1; done
        exit 92
      }
      ask() { curl -sSk --max-time 60 -u 'anna:correct horse' "$@" https://127.0.0.1:8443/v1/push; }
      # Waits until so many requests have come.
      await() { for i in $(seq 600); do [ -e got/$1.json ] && return; sleep 0.1; done; exit 93; }
      # Subscribed before anything moves.
      start log0
      for i in $(seq 600); do grep -q ready service && break; sleep 0.1; done
      head -n 1 service > subscription
      ask -d @subscription > answer1 || exit 94
      kill $stream
      wait $stream
      start log1 --movement high
      await 1
      kill -9 $stream
      wait $stream
      count=$(ls got/*.json | wc -l)
      start log2 --movement high
      ask > answer2 || exit 95
      await $((count + 1))
      '\(nightjarPath)' user remove anna --users users || exit 96
      for i in $(seq 600); do [ -s state/push-subscriptions ] || break; sleep 0.1; done
      cp state/push-subscriptions after
      kill $stream
      wait $stream
      status=$?
      cat log0 log1 log2 >&2
      exit $status
      """
    let result = try Subprocess.run(["unshare", "-rn", "sh", "-c", script], in: directory, limit: 400)
    try #require(result.status == 0, "\(result.status) \(result.error)")
    let requests = try PushService.requests(in: directory.path("got"))
    #expect(requests.count >= 2 && requests.allSatisfy { $0.faults.isEmpty }, "\(requests)")
    #expect(requests.allSatisfy { $0.message?.kind == "movement" && $0.message?.camera == "camera" }, "\(requests)")
    // Each alert once: both runs begin with the number 1.
    #expect(requests.count { $0.message?.id == 1 } == 2, "\(requests)")
    let answers = try ["answer1", "answer2"].map { name in
      try #require(
        try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: directory.path(name))))
          as? [String: Any])
    }
    #expect(answers.allSatisfy { $0["subscriptions"] as? Int == 1 })
    #expect(answers[0]["key"] as? String == answers[1]["key"] as? String)
    #expect(Set(requests.map(\.key)) == [answers[0]["key"] as? String])
    #expect(try Data(contentsOf: URL(fileURLWithPath: directory.path("after"))).isEmpty)
    // No message failed, and the browser of the user who is gone is told.
    let lines = result.log.lines.filter { $0.hasPrefix("web push") }
    let end = " is removed: its log-in is gone, or another one"
    #expect(lines.count == 1 && lines.allSatisfy { $0.hasSuffix(end) }, "\(result.error)")
  }
}
