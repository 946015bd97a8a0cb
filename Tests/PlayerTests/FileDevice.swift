import Foundation
import TestSupport

/// A sound device of alsa-lib's plugin `file`, which reads raw samples from a file or a pipe.
enum FileDevice {
  /// Defines the device `name` for programs whose home is `directory`.
  static func define(_ name: String, reading path: String, in directory: TemporaryDirectory) throws {
    let definition = """
      pcm.\(name) {
        type file
        slave.pcm "null"
        file "/dev/null"
        infile "\(path)"
        format "raw"
      }

      """
    try definition.write(toFile: directory.path(".asoundrc"), atomically: true, encoding: .utf8)
  }
}
