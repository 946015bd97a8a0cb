/// The origin of the running stream, on which the commands for the stream depend.
package enum StreamOrigin: Hashable, Sendable {
  /// nightjar.service.
  case service
  /// A user, or another program.
  case user

  /// The remedy that restarts the stream.
  var restart: Mend {
    switch self {
    case .service: .asRoot("systemctl restart nightjar")
    case .user: .advice("start the stream again")
    }
  }

  /// The remedy that shows what the stream has told of its sound.
  var soundLog: Mend {
    switch self {
    case .service: .asRoot("journalctl -u nightjar NIGHTJAR_EVENT=sound -n 20 --no-pager")
    case .user: .advice("the stream's log says why")
    }
  }
}
