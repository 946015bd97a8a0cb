import Foundation

/// The scripts that tests put into the page before its own.
package enum PageFaults {
  /// The folder of the clients that tests run.
  package static let folder = packageRoot.appendingPathComponent("Tests/PlayerTests/Clients").path

  /// Returns the script with faults and instruments; `first` runs before it, `last` after it.
  package static func script(first: String = "", last: String = "") throws -> String {
    try first + String(contentsOfFile: "\(folder)/page-faults.js", encoding: .utf8) + last
  }

  /// Returns a script that gives timers of the page another time, in milliseconds.
  ///
  /// - Parameter condition: the expression that is true for those timers; `work` is their function, `time` their time.
  package static func timers(where condition: String, take milliseconds: Int) -> String {
    """
    {
      const wait = setTimeout;
      window.setTimeout = (work, time, ...all) => wait(work, \(condition) ? \(milliseconds) : time, ...all);
    }

    """
  }

  /// The script with which the page's words of four or five seconds stay for a minute: a host that is busy asks for
  /// them less often. Other timers of the same time do not draw.
  package static let lastingWords = timers(
    where: "[4000, 5000].includes(time) && String(work).includes('draw(')", take: 60_000)
}
