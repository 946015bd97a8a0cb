/// A real-time priority that a test requests for another program. Some users and some containers may not have one.
package enum RequestedPriority {
  /// The words before a program that gets a processor at once, before programs without a priority.
  package static let words = ["chrt", "-r", "1"]

  /// `true` if this process may request one.
  package static let isAllowed: Bool = {
    guard let directory = try? TemporaryDirectory(),
      let result = try? Subprocess.run(words + ["true"], in: directory, limit: 60)
    else { return false }
    return result.status == 0
  }()
}
