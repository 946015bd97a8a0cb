import Foundation
import TestSupport
import Testing

/// Settings of sound that cannot be met.
@Suite struct SoundSettingTests {
  @Test(arguments: [
    ("audio", "off", "choose none for no sound"), ("audio", "yes", "choose auto for the camera's own microphone"),
    ("audio-bitrate", "5k", "choose 6k to 128k, as in 32k"), ("audio-bitrate", "129k", "choose 6k to 128k"),
    ("audio-bitrate", "9223372036854775807k", "choose 6k to 128k"), ("audio-bitrate", "32", "choose 6k to 128k"),
    ("audio-gain", "31", "choose -30 to 30 dB"), ("audio-gain", "-30.5", "choose -30 to 30 dB"),
    ("audio-gain", "loud", "choose -30 to 30 dB"), ("audio-channels", "0", "1"), ("audio-channels", "3", "2"),
    ("audio-channels", "two", "1"), ("audio-high-pass", "maybe", "true"),
  ])
  func `a setting that cannot be met is refused with its line and what may be chosen`(
    name: String, value: String, words: String
  ) throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("box.toml")
    try "source = \"test\"\n\(name) = \"\(value)\"\n".write(toFile: file, atomically: true, encoding: .utf8)
    let check = try Subprocess.run([nightjarPath, "config", "check", "--config", file], in: directory)
    #expect(check.status == 65, "\(check.outputText)\(check.error)")
    let line = check.error.split(separator: "\n").first { $0.contains("box.toml:2") } ?? ""
    #expect(line.contains(name) && line.contains(words), "\(check.error)")
  }

  @Test func `a file with all settings of sound is good`() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("box.toml")
    let text = """
      source = "test"
      audio = "hw:CARD=C920,DEV=0"
      audio-bitrate = "128k"
      audio-gain = -30
      audio-channels = 2
      audio-high-pass = false

      """
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    let check = try Subprocess.run([nightjarPath, "config", "check", "--config", file], in: directory)
    #expect(check.status == 0, "\(check.error)")
  }
}
