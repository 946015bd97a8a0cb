import Foundation

/// The scripts that tests put into the page before its own.
package enum PageFaults {
  /// The folder of the clients that tests run.
  package static let folder = packageRoot.appendingPathComponent("Tests/PlayerTests/Clients").path

  /// Returns the script with faults and instruments; `first` runs before it, `last` after it.
  package static func script(first: String = "", last: String = "") throws -> String {
    try first + String(contentsOfFile: "\(folder)/page-faults.js", encoding: .utf8) + last
  }
}
