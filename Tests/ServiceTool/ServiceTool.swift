import Glibc
import Host
import Media
import Platform

/// The lines and answers of a service, for tests to look at from outside: the environment that it depends on is a
/// process's own.
@main
enum ServiceTool {
  static func main() {
    switch CommandLine.arguments.dropFirst().first {
    case "notify":
      guard let notifier = ServiceNotifier() else { return print("nobody listens") }
      print(notifier.watchdogPeriod.map { "watchdog \($0.nanoseconds / 1_000_000) ms" } ?? "no watchdog")
      notifier.ready()
      notifier.status("two\nlines")
      notifier.keepAlive()
      notifier.stopping()
    case "journal":
      print(Journal() == nil ? "standard error is not the journal" : "standard error is the journal")
    case "sockets":
      do throws(ActivationError) {
        for socket in try ActivationSocket.take(known: ["rtsp", "rtsps"]) {
          print("\(socket.name) \(socket.descriptor) \(socket.address) \(socket.port)")
        }
        // They are a process's own: nothing is left for another look, or for a child.
        print(getenv("LISTEN_FDS") == nil ? "taken" : "left")
      } catch {
        print(error)
        exit(error.kind == .usage ? 64 : 70)
      }
    default: exit(64)
    }
  }
}
