import Foundation
import TestSupport
import Testing

/// Settings of the alerts.
@Suite struct AlertSettingTests {
  private static func check(_ text: String) throws -> Subprocess.Result {
    let directory = try TemporaryDirectory()
    let file = directory.path("box.toml")
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    return try Subprocess.run([nightjarPath, "config", "check", "--config", file], in: directory)
  }

  @Test(arguments: [
    ("noise", "loud", "choose off, low, medium, high, or 3 to 40 dB"), ("noise", "2dB", "3 to 40 dB"),
    ("noise", "41", "3 to 40 dB"), ("noise", "-12dB", "3 to 40 dB"),
    ("movement", "12", "choose off, low, medium or high"),
    ("webhook", "ftp://example.org/", "write https://HOST/PATH"), ("webhook", "https://a@b/", "without a user"),
    ("event-command", "logger -t x", "write the whole path of the program first"),
    ("quiet-hours", "22:00", "as in 22:00-06:30"), ("quiet-hours", "22:00-22:00", "two different local times"),
  ])
  func `A setting that cannot be met is refused`(name: String, value: String, words: String) throws {
    let check = try Self.check("source = \"test\"\n\(name) = \"\(value)\"\n")
    #expect(check.status == 65 && check.error.contains("box.toml:2") && check.error.contains(words), "\(check.error)")
  }

  @Test(arguments: ["0,0,100", "0,0,101,20", "50,0,60,10", "0,0,0,10", "a,b,c,d", "0,0,100,20,3"])
  func `A mask that is not within the picture is refused`(mask: String) throws {
    let check = try Self.check("source = \"test\"\nmovement = \"low\"\nmovement-mask = [\"\(mask)\"]\n")
    #expect(check.status == 65 && check.error.contains("within 0 to 100"), "\(check.error)")
  }

  @Test func `A key without a webhook is refused, and all settings of the ways out together are good`() throws {
    let without = try Self.check("source = \"test\"\nwebhook-key = \"key\"\nwebhook-private = true\n")
    #expect(without.status == 65 && without.error.contains("webhook-key is for webhook only"), "\(without.error)")
    #expect(without.error.contains("webhook-private is for webhook only"), "\(without.error)")
    let urls = Array(repeating: #""http://a/""#, count: 5).joined(separator: ", ")
    let many = try Self.check("source = \"test\"\nwebhook = [\(urls)]\n")
    #expect(many.status == 65 && many.error.contains("there are 5, and 4 are allowed"), "\(many.error)")
    let all = try Self.check(
      """
      webhook = ["https://example.org/hook", "http://192.168.1.7:8123/api?id=1"]
      webhook-private = true
      event-command = ["/usr/bin/logger", "-t", "nursery"]
      source = "test"

      """)
    #expect(all.status == 0, "\(all.error)")
  }

  @Test func `Masks without movement are refused, and all settings together are good`() throws {
    let mask = #"movement-mask = ["0,0,100,20", "50.5,50,49.5,50"]"#
    let without = try Self.check("source = \"test\"\n\(mask)\n")
    #expect(without.status == 65 && without.error.contains("movement-mask is for movement only"), "\(without.error)")
    let all = try Self.check(
      """
      events-file = "/var/lib/nightjar/events.log"
      quiet-hours = "22:00-06:30"
      source = "test"
      noise = "12dB"
      crying = true
      movement = "high"
      \(mask)

      """)
    #expect(all.status == 0, "\(all.error)")
  }
}
