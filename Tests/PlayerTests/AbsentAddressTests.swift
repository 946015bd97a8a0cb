import Foundation
import TestSupport
import Testing

/// A server at an address that this machine has only later: a network that comes after the program.
@Suite struct AbsentAddressTests {
  /// Returns `true` if a network of a test's own may have `address`.
  private static func isPossible(_ address: String) -> Bool {
    guard let directory = try? TemporaryDirectory() else { return false }
    let script = "ip link set lo up && ip addr add \(address) dev lo"
    return (try? Subprocess.run(["unshare", "-rn", "sh", "-c", script], in: directory))?.status == 0
  }

  private static let hasIPv4 = isPossible("10.9.8.7/32")
  private static let addresses: [String] = ["10.9.8.7"] + (isPossible("fd00:9:8::7/128") ? ["fd00:9:8::7"] : [])

  @Test(.enabled(if: hasIPv4, "needs user namespaces"), arguments: addresses)
  func `is reached once the address is there`(address: String) throws {
    let directory = try TemporaryDirectory()
    let host = address.contains(":") ? "[\(address)]" : address
    let script = """
      cd '\(directory.url.path)'
      ip link set lo up
      echo 'correct horse' | '\(nightjarPath)' user add anna --users users > /dev/null || exit 90
      '\(nightjarPath)' stream --source test --size 320x240 --rtsp '\(host):8554' --users users --control none 2> log &
      stream=$!
      # Behind the lines with the URLs.
      for i in $(seq 1200); do grep -q 'no address' log && break; sleep 0.1; done
      grep 'no address' log
      ip addr add \(address)/\(address.contains(":") ? "128" : "32") dev lo || exit 91
      # As soon as it is reached.
      play() {
        for i in $(seq 100); do
          ffmpeg -nostdin -v error -rtsp_transport tcp -i 'rtsp://anna:correct%20horse@\(host):8554/camera' -frames:v 10 \
            -f framecrc - && return
          sleep 0.1
        done
        return 1
      }
      play
      status=$?
      # Gone and back again.
      ip addr del \(address)/\(address.contains(":") ? "128" : "32") dev lo
      ip addr add \(address)/\(address.contains(":") ? "128" : "32") dev lo || exit 92
      play || status=$?
      kill $stream
      wait $stream
      cat log >&2
      exit $status
      """
    let result = try Subprocess.run(["unshare", "-rn", "sh", "-c", script], in: directory)
    #expect(result.status == 0, "\(result.error)")
    let warning = "this host has no address \(address) now; nightjar listens there as soon as it has"
    #expect(result.listing.warnings == [warning], "\(result.outputText)")
    #expect(result.outputText.split(separator: "\n").count { $0.hasPrefix("0,") } == 20, "\(result.outputText)")
  }

  /// `true` if a namespace may have an interface that has a link-local address of IPv6 alone.
  private static let hasLinkLocal: Bool = {
    guard let directory = try? TemporaryDirectory() else { return false }
    return (try? Subprocess.run(["unshare", "-rn", "sh", "-c", linkLocal], in: directory))?.status == 0
  }()

  /// A network as it is before DHCP has answered: an interface that is up, with fe80::/10 and nothing else. The
  /// resolver takes such a machine for one without IPv4, in spite of 127.0.0.1.
  private static let linkLocal = """
    ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up || exit 90
    for i in $(seq 100); do
      ip -6 addr show dev v0 scope link | grep -q inet6 && ! ip -6 addr show dev v0 | grep -q tentative && break
      sleep 0.1
    done
    ip -6 addr show dev v0 scope link | grep -q inet6 || exit 91
    """

  /// The addresses to listen at; nil is none, and no users, so that this host alone is served. A host that has users of
  /// its own would serve those.
  private static let places: [String?] = {
    let files = ["users", "tokens"].map { "/etc/nightjar/\($0)" }
    let hasUsers = files.contains { FileManager.default.fileExists(atPath: $0) }
    return ["0.0.0.0", "", "10.9.8.7"] + (hasUsers ? [] : [nil])
  }()

  /// The program listens as it was asked to, whichever addresses there are at the start: viewers by UDP would otherwise
  /// get nothing from a socket of IPv6.
  @Test(.enabled(if: hasLinkLocal, "needs user namespaces, veth and IPv6"), arguments: places)
  func `a program that was started before IPv4 was there serves it`(address: String?) throws {
    let directory = try TemporaryDirectory()
    let options = address.map { "--rtsp '\($0):8554' --https '\($0):8443' --users users" } ?? "--rtsp --https"
    // This host reaches itself, without an address that comes later.
    let isOpen = address != nil
    let host = isOpen ? "10.9.8.7" : "127.0.0.1"
    let url = "rtsp://\(isOpen ? "anna:correct%20horse@" : "")\(host):8554/camera"
    let login = isOpen ? "-u 'anna:correct horse'" : ""
    let script = """
      cd '\(directory.url.path)'
      \(Self.linkLocal)
      echo 'correct horse' | '\(nightjarPath)' user add anna --users users > /dev/null || exit 92
      '\(nightjarPath)' stream --source test --size 320x240 \(options) --control none 2> log &
      stream=$!
      for i in $(seq 1200); do grep -q '^rtsp ' log && break; sleep 0.1; done
      echo "listening: $(ss -ltnH | awk '{ print $4 }' | sort | tr '\\n' ' ')"
      \(isOpen ? "ip addr add \(host)/24 dev v0 || exit 93" : "")
      status=0
      for way in udp tcp; do
        ffmpeg -nostdin -v error -rtsp_transport $way -i '\(url)' -frames:v 10 -f framecrc - || status=$?
      done
      curl -sk -o /dev/null -w 'https %{http_code}\\n' \(login) https://\(host):8443/v1/status
      kill $stream
      wait $stream
      cat log >&2
      exit $status
      """
    let result = try Subprocess.run(
      ["unshare", "-rn", "sh", "-c", script], in: directory, environment: ["STATE_DIRECTORY": directory.path("state")])
    #expect(result.status == 0, "\(result.error)")
    let here = address.map { $0.isEmpty ? "0.0.0.0" : $0 } ?? host
    let listening = result.outputText.split(separator: "\n").first { $0.hasPrefix("listening: ") } ?? ""
    let addresses = listening.split(separator: " ").dropFirst().map(String.init)
    #expect(Set(["\(here):8554", "\(here):8443"]).isSubset(of: addresses), "\(listening)")
    #expect(!listening.contains("::ffff:"), "\(listening)")
    #expect(result.outputText.split(separator: "\n").count { $0.hasPrefix("0,") } == 20, "\(result.error)")
    #expect(result.outputText.split(separator: "\n").count { $0 == "https 200" } == 1, "\(result.outputText)")
  }
}
