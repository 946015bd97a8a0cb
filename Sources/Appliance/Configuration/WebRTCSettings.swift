package import Platform
import Serving

/// The settings of the browsers' one port.
package struct WebRTCSettings: Hashable, Sendable {
  /// The number of the UDP port and of the TCP port.
  package var port = PeerServer.Configuration.standardPort
  /// The addresses that browsers are told beside those of the interfaces.
  package var addresses: [IPAddress] = []

  /// Reports settings without a meaning.
  func check(
    beside api: APISettings, _ http: HTTPSettings, _ options: OptionLayer, _ faults: inout SettingFaults
  ) {
    guard api.https == nil, http.http == nil else { return }
    for setting in [ApplianceSetting.webrtcPort, .webrtcAddress] where options[setting.rawValue] != nil {
      faults.add("\(setting) is for \(.https) and \(.http) only")
    }
  }

  /// Returns the server's configuration; nil if no page is served.
  ///
  /// - Parameters:
  ///   - api: the server of HTTPS, if there is one.
  ///   - http: the server of plain HTTP, whose page is for this host alone.
  func configuration(
    _ api: HTTPServer.Configuration?, _ http: HTTPServer.Configuration?
  ) -> PeerServer.Configuration? {
    guard api != nil || http?.listeners.contains(where: \.isLoopback) == true else { return nil }
    return PeerServer.Configuration(
      port: port, addresses: addresses,
      isForThisMachineAlone: api?.listeners.allSatisfy(\.isLoopback) ?? true)
  }

  /// Parses the address of a router or of a VPN.
  static func address(_ text: String) throws(ValueError) -> IPAddress {
    guard let address = IPAddress(text), !address.isMulticast else {
      throw ValueError("write an IP address, as in 203.0.113.7 or 2001:db8::7")
    }
    return address
  }
}
