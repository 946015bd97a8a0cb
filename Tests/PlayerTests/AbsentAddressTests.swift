import Foundation
import TestSupport
import Testing

/// A server at an address that this machine has only later: a network that comes after the program.
@Suite struct AbsentAddressTests {
  private static let isPossible: Bool = {
    guard let directory = try? TemporaryDirectory() else { return false }
    let result = try? Subprocess.run(
      ["unshare", "-rn", "sh", "-c", "ip link set lo up && ip addr add 10.9.8.7/32 dev lo"], in: directory)
    return result?.status == 0
  }()

  @Test(.enabled(if: isPossible, "needs user namespaces"), arguments: ["10.9.8.7", "fd00:9:8::7"])
  func `is reached once the address is there`(address: String) throws {
    let directory = try TemporaryDirectory()
    let host = address.contains(":") ? "[\(address)]" : address
    let script = """
      cd '\(directory.url.path)'
      ip link set lo up
      echo 'correct horse' | '\(nightjarPath)' user add anna --users users > /dev/null || exit 90
      '\(nightjarPath)' stream --source test --size 320x240 --rtsp '\(host):8554' --users users --control none 2> log &
      stream=$!
      for i in $(seq 200); do grep -q '^rtsp ' log && break; sleep 0.1; done
      grep 'no address' log
      ip addr add \(address)/\(address.contains(":") ? "128" : "32") dev lo || exit 91
      sleep 2
      ffmpeg -nostdin -v error -rtsp_transport tcp -i 'rtsp://anna:correct%20horse@\(host):8554/camera' -frames:v 10 \
        -f framecrc -
      status=$?
      # Gone and back again.
      ip addr del \(address)/\(address.contains(":") ? "128" : "32") dev lo
      sleep 1
      ip addr add \(address)/\(address.contains(":") ? "128" : "32") dev lo || exit 92
      sleep 2
      ffmpeg -nostdin -v error -rtsp_transport tcp -i 'rtsp://anna:correct%20horse@\(host):8554/camera' -frames:v 10 \
        -f framecrc - || status=$?
      kill $stream
      wait $stream
      cat log >&2
      exit $status
      """
    let result = try Subprocess.run(["unshare", "-rn", "sh", "-c", script], in: directory)
    #expect(result.status == 0, "\(result.error)")
    #expect(result.outputText.contains("this machine has no address \(address) now"), "\(result.outputText)")
    #expect(result.outputText.split(separator: "\n").count { $0.hasPrefix("0,") } == 20, "\(result.outputText)")
  }
}
