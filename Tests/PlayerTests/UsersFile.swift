import Foundation
import TestSupport
import Testing

/// A file of users, made by the program itself.
enum UsersFile {
  /// Writes it into `directory`; the options that name it, none without users.
  static func options(_ users: [String: String], in directory: TemporaryDirectory) throws -> [String] {
    guard !users.isEmpty else { return [] }
    for (name, password) in users { try add(name, password, in: directory) }
    return ["--users", directory.path("users")]
  }

  /// Adds a user to it.
  static func add(_ name: String, _ password: String, in directory: TemporaryDirectory) throws {
    let result = try Subprocess.run(
      [
        "sh", "-c", "printf '%s\\n' \"$2\" | \"$0\" user add \"$1\" --users \"$3\"", nightjarPath, name, password,
        directory.path("users"),
      ], in: directory)
    #expect(result.status == 0, "\(result.error)")
  }
}
