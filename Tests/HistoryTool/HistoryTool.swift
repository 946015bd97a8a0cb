import Alerts
import Glibc
import Platform

/// Records events without end: `HistoryTool FILE`. Tells the number of each, a line each, once it is recorded. The picture of
/// before an alert is its number, a hundred times.
@main
struct HistoryTool {
  static func main() {
    guard CommandLine.arguments.count == 2 else { exit(64) }
    do {
      let history = try AlertHistory(path: CommandLine.arguments[1])
      say("first \(history.lastID)")
      var isOpen = !history.open.isEmpty
      while true {
        let condition = AlertCondition(
          .noise, camera: "nursery", since: .now(), text: "noise: 14 dB over the background")
        history.record(
          [isOpen ? .end(condition.subject, since: .now()) : .begin(condition, suppressed: 0)], isQuiet: false
        ) { [next = history.lastID + 1] _ in Array(String(repeating: "\(next) ", count: 100).utf8) }
        history.forgetPictures()
        isOpen.toggle()
        say("\(history.lastID)")
      }
    } catch let error as any Failure {
      say("\(error)")
      exit(1)
    } catch {
      exit(1)
    }
  }

  private static func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }
}
