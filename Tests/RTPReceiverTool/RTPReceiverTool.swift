import Glibc
import Media
import Platform
import RTP

/// Receives one H.264 stream as a viewer, and prints as JSON what came of it:
/// `RTPReceiverTool PORT SECONDS [--without-nack]`. RTP comes to PORT, RTCP to the next, both of 127.0.0.1.
///
/// It ends after SECONDS or at SIGTERM; "ready" on standard output says that the ports are open, "broken" that the
/// picture waits for a key frame, and "whole" that it no longer does. The JSON is the last line.
@main
struct RTPReceiverTool {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count > 2, let port = UInt16(arguments[1]), port < .max, let seconds = Double(arguments[2]),
      arguments.dropFirst(3).allSatisfy({ $0 == "--without-nack" })
    else {
      fail("RTPReceiverTool PORT SECONDS [--without-nack]", status: 64)
    }
    // Read as a descriptor, so that one wait is for everything.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTERM)
    sigprocmask(SIG_BLOCK, &signals, nil)
    do {
      let reception = try Reception(port: port, asksAgain: arguments.count == 3)
      say("ready")
      reception.run(until: .now() + Duration(seconds: seconds), signals: signals)
      say(reception.json)
    } catch {
      fail("\(error)", status: 1)
    }
  }

  /// A line on standard output, at once.
  static func say(_ line: String) { put(line, STDOUT_FILENO) }

  static func fail(_ line: String, status: CInt) -> Never {
    put(line, STDERR_FILENO)
    exit(status)
  }

  private static func put(_ line: String, _ descriptor: CInt) {
    let bytes = Array((line + "\n").utf8)
    _ = write(descriptor, bytes, bytes.count)
  }
}
