import Foundation
import TestSupport
import Testing

/// A file of users, made by the program itself.
enum UsersFile {
  /// Writes it into `directory`; the options that name it, none without users.
  static func options(_ users: [String: String], in directory: TemporaryDirectory) throws -> [String] {
    guard !users.isEmpty else { return [] }
    let file = directory.path("users")
    for (name, password) in users {
      let result = try Subprocess.run(
        [
          "sh", "-c", "printf '%s\\n' \"$2\" | \"$0\" user add \"$1\" --users \"$3\"", nightjarPath, name, password,
          file,
        ], in: directory)
      #expect(result.status == 0, "\(result.error)")
    }
    return ["--users", file]
  }
}
