public import Media
import SystemBus

/// Avahi, for who only asks whether it is there.
public enum AvahiDaemon {
  /// What it calls this machine.
  ///
  /// - Throws: ``DiscoveryError`` where it does not run or does not work.
  public static func hostName(patience: MediaTime = MediaTime(seconds: 2)) throws(DiscoveryError) -> String {
    do throws(BusError) {
      let client = try AvahiClient(patience: patience)
      if try client.isRunning() { return try client.hostName() }
    } catch {
      throw DiscoveryError(error)
    }
    throw .notRunning
  }
}
