import Foundation
import TestSupport
import Testing

/// The page's alarm for a camera and a microphone that are unplugged, on the kernel's own drivers: Chromium hears it where the
/// loudspeaker gets it.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct PageAlarmRigTests {
  /// Takes the camera away (`unbind`), or brings it back (`bind`).
  private static func plug(_ action: String) throws {
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "/sys/bus/platform/drivers/vivid/\(action)"))
    try file.write(contentsOf: Data("vivid.0".utf8))
    try file.close()
  }

  @Test(.enabled(if: runsLong, "takes minutes: make check-long"))
  func `the alarm sounds for a camera and for a microphone that are unplugged, and says which`() throws {
    let directory = try TemporaryDirectory()
    let port = try TCPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--control", directory.path("control"), "--https", "127.0.0.1:\(port)", "--source",
        try Vivid.node(0), "--size", "320x180", "--fps", "10", "--audio", LoopbackCard.microphone,
      ], in: directory, environment: ["STATE_DIRECTORY": directory.path("state")])
    defer { program.send(SIGTERM) }
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    try #require(eventually(within: 60) { program.errorSoFar.contains("https ") }, "\(program.errorSoFar)")
    let browser = try Browser(in: directory)
    try browser.inject(try PageFaults.script())
    try browser.open("https://127.0.0.1:\(port)/")
    try #require(
      eventually(within: 120) { browser.text("nightjar.state") == "live" }, "\(browser.page) \(program.errorSoFar)")
    // The page knows that there was a microphone once it has been told so.
    try browser.click("Wake me if the line fails")
    let health = "(await fetch('healthz').then((answer) => answer.json())).cameras[0].sound"
    #expect(eventually(within: 60) { browser.text("(async () => \(health))()") == "present" })
    #expect(browser.alarm.peak == 0, "\(browser.page)")

    func provoke(_ words: String, _ unplug: () throws -> Void, _ plug: () throws -> Void) throws {
      try unplug()
      let isHeard = browser.alarmSounds()
      #expect(isHeard, "\(words): \(browser.page) \(program.errorSoFar.suffix(1000))")
      let isSaid = eventually(within: 50) { browser.page.contains(words) }
      #expect(isSaid, "\(browser.page)")
      // The session goes on all the while: a placeholder and silence come.
      #expect(browser.text("nightjar.connection?.connectionState") == "connected")
      try plug()
      let isBack = eventually(within: 120) { browser.text("nightjar.state") == "live" }
      #expect(isBack, "\(words): \(browser.page) \(program.errorSoFar.suffix(1000))")
      try browser.click("I am awake")
    }
    try provoke("The microphone delivers no sound.") {
      try LoopbackCard.plug("unbind")
      player.send(SIGKILL)
    } _: {
      try LoopbackCard.plug("bind")
    }
    try provoke("The camera is disconnected.") {
      try Self.plug("unbind")
    } _: {
      try Self.plug("bind")
    }
  }
}
