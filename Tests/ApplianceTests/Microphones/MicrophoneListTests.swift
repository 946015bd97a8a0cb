import Foundation
import TestSupport
import Testing

/// The microphones of this machine, which may have none.
@Suite struct MicrophoneListTests {
  @Test func `devices lists microphones, as text and as JSON`() throws {
    let directory = try TemporaryDirectory()
    let text = try Subprocess.run([nightjarPath, "devices"], in: directory)
    #expect(text.status == 0)
    let lacks = text.listing.count(of: "no microphone found: nightjar stream has no sound") == 1
    let json = try Subprocess.run([nightjarPath, "devices", "--json"], in: directory)
    let document = try #require(try JSONSerialization.jsonObject(with: json.output) as? [String: Any])
    let microphones = try #require(document["microphones"] as? [[String: Any]])
    #expect(lacks == microphones.isEmpty)
    for microphone in microphones {
      let device = try #require(microphone["device"] as? String)
      let name = try #require(microphone["name"] as? String)
      let path = try #require(microphone["path"] as? String)
      #expect(text.listing.count(of: "\(device)  \(name) (\(path))") == 1, "\(text.outputText)")
      #expect(microphone["usable"] as? Bool == (microphone["obstacle"] == nil))
    }
  }

  @Test func `a shell completes the words of --audio and the microphones`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "---completion", "stream", "--", "--audio", "2", "0", "nightjar", "stream", "--audio", ""],
      in: directory, environment: ["SAP_SHELL": "bash"])
    let words = result.outputText.split(separator: "\n").map(String.init)
    #expect(words.starts(with: ["auto", "none", "test"]), "\(result.outputText)\(result.error)")
    #expect(words.dropFirst(3).allSatisfy { $0.hasPrefix("hw:CARD=") })
  }
}
