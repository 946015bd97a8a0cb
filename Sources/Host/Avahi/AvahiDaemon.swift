package import Platform

/// The Avahi daemon, for callers that only check that it works.
package enum AvahiDaemon {
  /// Returns Avahi's host name for this machine.
  ///
  /// - Throws: ``DiscoveryError`` where Avahi does not run or does not work.
  package static func hostName(patience: Duration = Duration(seconds: 2)) throws(DiscoveryError) -> String {
    do throws(BusError) {
      let client = try AvahiClient(patience: patience)
      if try client.isRunning() { return try client.hostName() }
    } catch {
      throw DiscoveryError(error)
    }
    throw .notRunning
  }
}
