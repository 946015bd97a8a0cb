import Foundation
import TestSupport

/// A configuration file, and what the program makes of it.
struct Program {
  let directory: TemporaryDirectory
  let file: String

  init(_ text: String? = nil) throws {
    directory = try TemporaryDirectory()
    file = directory.path("box.toml")
    if let text { try text.write(toFile: file, atomically: false, encoding: .utf8) }
  }

  func run(_ arguments: [String], _ environment: [String: String] = [:]) throws -> Subprocess.Result {
    try Subprocess.run(
      [nightjarPath] + arguments, in: directory,
      environment: ["NIGHTJAR_CONFIG": file].merging(environment) { $1 }, limit: 60)
  }
}
