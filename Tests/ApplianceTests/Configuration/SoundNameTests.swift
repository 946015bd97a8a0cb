import Foundation
import TestSupport
import Testing

/// Names of sound devices that somebody else may have written.
@Suite struct SoundNameTests {
  @Test(arguments: [
    "file:x", "plug:file:x", "pcm.file:x", "plug:SLAVE=file:x", "tee:null,x", "plug:'file:|id'", "hw:\u{1B}[2J",
    "hw:" + String(repeating: "0", count: 5000),
  ])
  func `no name of --audio makes alsa-lib write a file`(name: String) throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path("folder")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for command in ["stream", "doctor"] {
      let options = (command == "doctor" ? ["--"] : []) + ["--config", "none", "--source", "test", "--duration", "1s"]
      let result = try Subprocess.run(
        ["sh", "-c", "cd \"$0\" && exec \"$@\"", folder, nightjarPath, command] + options
          + ["--control", "none", "--audio", name], in: directory)
      #expect(result.status == (command == "doctor" ? 1 : 64), "\(result.error)")
      let said = result.outputText + result.error
      #expect(said.contains("--audio") || said.contains("sound device"), "\(said)")
      #expect(said.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 32 } && said.utf8.count < 4000)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    let file = directory.path("box.toml")
    let quoted = name.unicodeScalars.map { $0.value < 32 ? "\\u00\(String($0.value, radix: 16))" : String($0) }.joined()
    try "audio = \"\(quoted)\"\n".write(toFile: file, atomically: true, encoding: .utf8)
    let check = try Subprocess.run([nightjarPath, "config", "check", "--config", file], in: directory)
    #expect(check.status == 65 && check.error.contains("box.toml:1"), "\(check.error)")
    #expect(check.error.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 32 })
  }
}
