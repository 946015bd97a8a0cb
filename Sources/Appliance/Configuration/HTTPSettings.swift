import Platform
import Serving

/// The settings of the plain HTTP server.
package struct HTTPSettings: Hashable, Sendable {
  /// The address to serve at; nil for no server.
  package var http: ListenAddress?

  /// The default port.
  package static let port = 8080

  /// Reports settings that contradict those of the other servers.
  func check(beside rtsp: RTSPSettings, _ api: APISettings, _ faults: inout SettingFaults) {
    if http == nil, api.https == nil, !rtsp.isServed, rtsp.users != nil {
      faults.add("\(.users) is for \(.rtsp), \(.rtsps), \(.https) and \(.http) only")
    }
    guard let http else { return }
    let others = rtsp.listening + (api.https.map { [(ApplianceSetting.https, $0, APISettings.port)] } ?? [])
    for (setting, other, port) in others where other.overlaps(http, ports: port, Self.port) {
      faults.add("\(setting) and \(.http) have the same port: change one of them, as in \(.http) :8081")
    }
  }

  /// Returns the server's configuration, from the options and the files on disk; `nil` if nothing is served.
  ///
  /// - Parameters:
  ///   - serving: the options that name users.
  ///   - rtsp: the RTSP server's configuration, with the files that are loaded already.
  ///   - former: the present configuration; see ``RTSPSettings/configuration(sockets:after:_:)``.
  /// - Throws: ``ApplianceFailure`` for an address that is open to other hosts while there are no users,
  ///   `UsersFileError`.
  func configuration(
    _ serving: RTSPSettings, rtsp: RTSPServerConfiguration?, after former: HTTPServer.Configuration? = nil
  ) throws -> HTTPServer.Configuration? {
    guard let http else { return nil }
    let users = try rtsp?.users ?? serving.usersFile(mayBeEmpty: former != nil)
    // Unlike the encrypted servers, this one is open to other hosts only if the options request that.
    let isOpen = http.address != nil && (users != nil || former?.listeners.contains { !$0.isLoopback } == true)
    guard let listeners = http.listeners(port: Self.port, isEncrypted: false, isOpenToOthers: isOpen) else {
      throw ApplianceFailure(
        kind: .usage,
        description: "--http \(http): without users only this host may watch: add one with "
          + ServiceAccount.addingUser)
    }
    return HTTPServer.Configuration(listeners: listeners, users: users)
  }
}
