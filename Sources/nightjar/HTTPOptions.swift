import ArgumentParser
import Control
import Credentials
import Listening
import Media
import RTSPServer

/// What there is to see over plain HTTP.
struct HTTPOptions: ParsableArguments {
  @Option(
    defaultAsFlag: ListenAddress(),
    help: ArgumentHelp(
      "Serve http://127.0.0.1:8080/snapshot.jpg, /stream.mjpg, /camera.sdp, /metrics and /healthz: not encrypted.",
      discussion: """
        Nothing can be changed by it. Of several cameras each has all but /metrics behind /cameras/NAME. This machine needs \
        no login, but for what a proxy or tunnel passes on, and :PORT stays on it. ADDRESS:PORT or ADDRESS lets others in who are users (nightjar user add NAME): \
        0.0.0.0 is every address of IPv4, [::] of IPv6. They log in by Digest, so that no password is sent, but anybody \
        on the way can see the pictures: --https hides them.
        """, valueName: "address:port"))
  var http: ListenAddress?

  /// The port unless told.
  static let port = 8080

  mutating func validate() throws {
    if let text = http?.unreadable { throw ValidationError("--http \(text): \(ListenAddress.rule)") }
  }

  /// Checks what this has in common with the other servers.
  ///
  /// - Throws: `ValidationError`.
  func validate(with serving: RTSPOptions, _ api: APIOptions) throws {
    if http == nil, api.https == nil, !serving.isServed, serving.users != nil {
      throw ValidationError("--users is for --rtsp, --rtsps, --https and --http only")
    }
    guard let http else { return }
    let others = [
      ("--rtsp", serving.rtsp, RTSPOptions.port), ("--rtsps", serving.rtsps, RTSPOptions.encryptedPort),
      ("--https", api.https, APIOptions.port),
    ]
    for (option, other, port) in others {
      if let other, other.overlaps(http, ports: port, Self.port) {
        throw ValidationError("\(option) and --http want the same port: give one of them another, as in --http :8081")
      }
    }
  }

  /// What is to be served, by what was given and what is on the disk; nil where nothing is.
  ///
  /// - Parameters:
  ///   - serving: where users are named.
  ///   - rtsp: what the RTSP server has loaded of them already.
  ///   - former: what is served until now; see ``RTSPOptions/configuration(sockets:after:_:)``.
  /// - Throws: ``CommandFailure`` for an address that is open to others while there are no users, `UsersFileError`.
  func configuration(
    _ serving: RTSPOptions, rtsp: ServerConfiguration?, after former: ReadingServer.Configuration? = nil
  ) throws -> ReadingServer.Configuration? {
    guard let http else { return nil }
    let users = try rtsp?.users ?? serving.usersFile(mayBeEmpty: former != nil)
    // Unlike what is encrypted, it is open to others only where that is asked for.
    let isOpen = http.address != nil && (users != nil || former?.listeners.contains { !$0.isLoopback } == true)
    guard let listeners = http.listeners(port: Self.port, isEncrypted: false, isOpenToOthers: isOpen) else {
      throw CommandFailure(
        kind: .usage,
        description: "--http \(http): without users only this machine may look: add one with "
          + ServiceAccount.addingUser)
    }
    return ReadingServer.Configuration(listeners: listeners, users: users)
  }
}
