package import Alerts
import Glibc
import Platform
import Serving

/// The settings of the events.
package struct EventSettings: Hashable, Sendable {
  /// The path of the history's file, or `none`; nil for the default.
  package var path: String?
  /// The hours in which alerts wake nobody; nil for none.
  package var quietHours: QuietHours?
  /// The way out to browsers whose page is closed.
  package var push = PushSettings()
  /// The ways out to other systems.
  package var outputs = EventOutputSettings()
  /// `true` keeps pictures of before and after the alerts of a camera with a detector.
  package var takesPictures = true

  /// The path of the history's file; nil for a history in memory. A service has the file by default. Other runs have
  /// none, because several may run at a time.
  private var usedPath: String? {
    guard let path else { return getenv("STATE_DIRECTORY") == nil ? nil : "\(StandardPaths.stateDirectory)/events.log" }
    return path == "none" ? nil : path
  }

  /// Opens the history. If the service's default file cannot be opened, the history is in memory, and the error says why.
  ///
  /// - Throws: `AlertJournal.OpenError` if the configuration names the file.
  func history() throws(AlertJournal.OpenError) -> (history: AlertHistory, error: AlertJournal.OpenError?) {
    guard let usedPath else { return (AlertHistory(), nil) }
    do {
      return (try AlertHistory(path: usedPath), nil)
    } catch {
      guard path == nil else { throw error }
      return (AlertHistory(), error)
    }
  }

  /// Reads the files that the ways out to other systems need.
  ///
  /// - Throws: ``ApplianceFailure`` with the file.
  func outputPlan() throws(ApplianceFailure) -> EventOutputPlan { try outputs.plan(takesPictures) }

  /// Parses `22:00-06:30`.
  static func quietHours(_ text: String) throws(ValueError) -> QuietHours? {
    if text == "none" { return .none }
    guard let hours = QuietHours(text: text) else {
      throw ValueError("write two different local times, as in 22:00-06:30, or none")
    }
    return .some(hours)
  }
}
