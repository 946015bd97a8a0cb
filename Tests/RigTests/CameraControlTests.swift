import Foundation
import TestSupport
import Testing

/// The cameras' own settings, on the kernel's drivers: asserted from the camera's side, and by v4l2-ctl.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct CameraControlTests {
  /// For messages.
  private static func values(_ camera: UVCCamera) -> [String: Int] { (try? camera.state().controls) ?? [:] }

  private func ctl(_ stream: LoggedStream, _ arguments: String..., in directory: TemporaryDirectory) throws
    -> Subprocess.Result
  {
    try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket, "controls"] + arguments, in: directory)
  }

  @Test func `settings reach a webcam in the right order, and again after a replug and a reload`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let file = directory.path("nightjar.toml")
    func write(_ controls: String) throws {
      try "[controls]\n\(controls)\n".write(toFile: file, atomically: true, encoding: .utf8)
    }
    try write(
      """
      exposure_time_absolute = 300
      auto_exposure = "Manual Mode"
      white_balance_temperature = 3000
      white_balance_automatic = false
      brightness = -7
      sharpnes = 4
      """)
    let stream = try LoggedStream(
      ["--config", file, "--source", try #require(camera.node), "--size", "1280x720", "--power-line", "50"],
      in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    let wanted = [
      "auto_exposure": 1, "exposure_time_absolute": 300, "white_balance_automatic": 0,
      "white_balance_temperature": 3000, "brightness": -7, "power_line_frequency": 1,
    ]
    func hasAll(_ values: [String: Int]) throws -> Bool {
      let controls = try camera.state().controls
      return values.allSatisfy { controls[$0.key] == $0.value }
    }
    #expect(try eventually { try hasAll(wanted) }, "\(Self.values(camera)) \(stream.program.errorSoFar)")
    #expect(stream.says("no control 'sharpnes'"))

    // What ctl sets holds over a replug, in which the camera forgets everything.
    let set = try ctl(stream, "set", "contrast=99", "saturation=33", in: directory)
    #expect(set.status == 0 && set.outputText == "contrast: 99\nsaturation: 33\n", "\(set.error)")
    try camera.command("unplug")
    #expect(stream.says("camera lost"))
    let absent = try ctl(stream, "set", "contrast=98", in: directory)
    #expect(absent.status == 69, "\(absent.status) \(absent.error)")
    try camera.command("plug")
    #expect(stream.says("camera is back"), "\(stream.program.errorSoFar)")
    let both = wanted.merging(["contrast": 99, "saturation": 33]) { $1 }
    #expect(try eventually { try hasAll(both) }, "\(Self.values(camera))")

    // Another file, live: no other pipeline, no gap.
    try write("brightness = 12\nauto_exposure = 1\nexposure_time_absolute = 500\nwhite_balance_automatic = 1")
    let reload = try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket, "reload"], in: directory)
    #expect(reload.outputText.contains("changed"), "\(reload.outputText) \(reload.error)")
    #expect(
      try eventually {
        try hasAll(["brightness": 12, "exposure_time_absolute": 500, "white_balance_automatic": 1])
      }, "\(Self.values(camera))")
    _ = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0 && stream.packets.sourceCount == 1)
  }

  @Test func `orders that cannot be are refused in a line, and nothing changes`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let stream = try LoggedStream(["--source", try #require(camera.node), "--size", "1280x720"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    for (arguments, status, words) in [
      (["set", "brigthness=1"], 66, "the nearest is brightness"), (["set", "brightness=99"], 64, "choose -64 to 64"),
      (["set", "exposure_time_absolute=300"], 64, "set auto_exposure=1"), (["set", "focus_absolute=7"], 64, "focus"),
      (["set", "power_line_frequency=many"], 64, "50 Hz"), (["get", "nothing"], 66, "no control 'nothing'"),
      (["set", "brightness"], 64, "NAME=VALUE"),
    ] {
      let result = try Subprocess.run(
        [nightjarPath, "ctl", "--socket", stream.socket, "controls"] + arguments, in: directory)
      #expect(
        Int(result.status) == status && result.error.contains(words), "\(arguments): \(result.status) \(result.error)")
    }
    #expect(try camera.state().controls["brightness"] == 0)
    let list = try ctl(stream, "list", "--json", in: directory)
    let answer = try #require(JSONSerialization.jsonObject(with: list.output) as? [String: Any], "\(list.error)")
    let controls = try #require(answer["controls"] as? [[String: Any]], "\(answer)")
    let exposure = controls.first { $0["name"] as? String == "exposure_time_absolute" }
    let inactivity =
      "exposure_time_absolute is inactive while auto_exposure is 3 (Aperture Priority Mode): set auto_exposure=1 first, or too"
    #expect(exposure?["inactivity"] as? String == inactivity, "\(controls)")
    // In words it is a line of its own below its control.
    let shown = try ctl(stream, "list", in: directory).listing.lines
    #expect(shown.contains { $0.drop { $0 == " " } == inactivity }, "\(shown)")
    let got = try ctl(stream, "set", "auto_exposure=1", "exposure_time_absolute=300", in: directory)
    #expect(got.status == 0, "\(got.error)")
    #expect(try ctl(stream, "get", "exposure_time_absolute", in: directory).outputText == "300\n")
    #expect(try camera.state().controls["exposure_time_absolute"] == 300)
    let reset = try ctl(stream, "reset", "auto_exposure", in: directory)
    #expect(reset.status == 0, "\(reset.error)")
    #expect(try camera.state().controls["auto_exposure"] == 8)
    _ = try stream.finish()
  }

  @Test func `the sensor lock fixes what has settled, and keeps it over a replug`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let stream = try LoggedStream(
      ["--source", try #require(camera.node), "--size", "1280x720", "--sensor-lock"], in: directory)
    #expect(stream.says("sensor locked: "), "\(stream.program.errorSoFar)")
    let locked = try camera.state().controls
    #expect(locked["auto_exposure"] == 1 && locked["white_balance_automatic"] == 0, "\(locked)")
    #expect(locked["focus_automatic_continuous"] == 0 && locked["exposure_dynamic_framerate"] == 0, "\(locked)")
    // It began at 156, and settles at 250; within what counts as noise.
    #expect((240...250).contains(locked["exposure_time_absolute"] ?? 0), "\(locked)")
    try camera.command("unplug")
    #expect(stream.says("camera lost"))
    try camera.command("plug")
    #expect(stream.says("camera is back"))
    let names = ["auto_exposure", "exposure_time_absolute", "exposure_dynamic_framerate"]
    #expect(
      try eventually {
        let controls = try camera.state().controls
        return names.allSatisfy { controls[$0] == locked[$0] }
      }, "\(Self.values(camera)) \(locked)")
    #expect(try ctl(stream, "unlock", in: directory).status == 0)
    #expect(try camera.state().controls["auto_exposure"] == 8)
    _ = try stream.finish()
  }

  @Test func `a reload that begins the camera anew takes back what ctl has set and locked`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let file = directory.path("nightjar.toml")
    func write(keyFrames interval: String) throws {
      try "keyframe-interval = \"\(interval)\"\n[controls]\ncontrast = 40\n"
        .write(toFile: file, atomically: true, encoding: .utf8)
    }
    try write(keyFrames: "2s")
    let stream = try LoggedStream(
      ["--config", file, "--source", try #require(camera.node), "--size", "1280x720"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    let set = try ctl(stream, "set", "brightness=20", "contrast=50", in: directory)
    #expect(set.status == 0, "\(set.error)")
    #expect(try ctl(stream, "lock", in: directory).status == 0)
    #expect(stream.says("sensor locked: "), "\(stream.program.errorSoFar)")
    #expect(try camera.state().controls["auto_exposure"] == 1)
    try write(keyFrames: "1s")
    let reload = try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket, "reload"], in: directory)
    #expect(stream.says("restarts, for "), "\(reload.outputText) \(reload.error)")
    let usual = ["brightness": 0, "contrast": 40, "auto_exposure": 8, "exposure_dynamic_framerate": 1]
    #expect(
      try eventually {
        let controls = try camera.state().controls
        return usual.allSatisfy { controls[$0.key] == $0.value }
      }, "\(Self.values(camera)) \(stream.program.errorSoFar)")
    _ = try stream.finish()
  }

  @Test func `at night its controls are set, and the status says so`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let file = directory.path("nightjar.toml")
    func write(from: Int, to: Int) throws {
      func clock(_ hours: Int) -> String {
        let parts = Calendar.current.dateComponents(
          [.hour, .minute], from: Date(timeIntervalSinceNow: Double(hours) * 3600))
        return String(format: "%02d:%02d", parts.hour ?? 0, parts.minute ?? 0)
      }
      try """
      [[camera]]
      source = "\(camera.node ?? "")"
      size = "1280x720"
      [camera.controls]
      gain = 3
      [camera.night]
      from = "\(clock(from))"
      to = "\(clock(to))"
      [camera.night.controls]
      gain = 200
      brightness = 40
      """.write(toFile: file, atomically: true, encoding: .utf8)
    }
    try write(from: -2, to: 2)
    let stream = try LoggedStream(["--config", file], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    func has(_ gain: Int, _ brightness: Int) throws -> Bool {
      let controls = try camera.state().controls
      return controls["gain"] == gain && controls["brightness"] == brightness
    }
    #expect(try eventually { try has(200, 40) }, "\(Self.values(camera)) \(stream.program.errorSoFar)")
    let status = try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket, "status"], in: directory)
    let controls = status.listing.values(of: "controls")
    #expect(controls.count == 1 && controls.allSatisfy { $0.hasPrefix("night") }, "\(status.outputText)")
    try write(from: 2, to: 3)
    _ = try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket, "reload"], in: directory)
    #expect(try eventually { try has(3, 0) }, "\(Self.values(camera)) \(stream.program.errorSoFar)")
    _ = try stream.finish()
  }

  /// The names of v4l2-ctl's list, each with its value, where it has one.
  private static func listed(_ text: String) -> [String: String] {
    var values: [String: String] = [:]
    for line in text.split(separator: "\n") {
      // "                     brightness 0x00980900 (int)    : min=0 max=255 step=1 default=128 value=128 flags=slider"
      guard let type = line.firstMatch(of: /^ +(\w+) 0x[0-9a-f]+ \((\w+)\) *:(.*)$/),
        ["int", "bool", "menu", "intmenu", "button", "bitmask", "int64"].contains(type.2), !type.3.contains("dims=")
      else { continue }
      let value = type.3.firstMatch(of: /value=(-?\w+)/).map { String($0.1) } ?? ""
      // Values of bitmasks are hexadecimal there.
      values[String(type.1)] = value.hasPrefix("0x") ? String(Int(value.dropFirst(2), radix: 16) ?? -1) : value
    }
    return values
  }

  @Test func `the list is v4l2-ctl's, of vivid with controls of every kind and of a webcam`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    for node in [try Vivid.node(0), try #require(camera.node)] {
      let theirs = Self.listed(
        try Subprocess.run(["v4l2-ctl", "-d", node, "--list-ctrls-menus"], in: directory).outputText)
      let result = try Subprocess.run([nightjarPath, "devices", "--controls", node, "--json"], in: directory)
      let document = try #require(try JSONSerialization.jsonObject(with: result.output) as? [String: Any])
      let cameras = try #require(document["cameras"] as? [[String: Any]])
      let controls = try #require(cameras.first?["controls"] as? [[String: Any]])
      let names = Set(controls.compactMap { $0["name"] as? String })
      #expect(names == Set(theirs.keys), "\(names.symmetricDifference(theirs.keys))")
      #expect(names.count >= 12)
      for control in controls where !((control["flags"] as? [String])?.contains("volatile") ?? false) {
        guard let name = control["name"] as? String, let value = (control["value"] as? NSNumber)?.int64Value,
          control["type"] as? String != "button"
        else { continue }
        let their = theirs[name].flatMap { Int64($0) }
        // v4l2-ctl gives a bitmask a sign.
        #expect(
          (control["type"] as? String == "bitmask" ? their.map { $0 & 0xFFFF_FFFF } : their) == value,
          "\(name): \(value), \(theirs[name] ?? "")")
      }
    }
  }

  @Test func `vivid's automatic gain is turned off before its gain is set`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    defer { try? Vivid.control(node, ["-c", "gain_automatic=1", "-c", "brightness=128"], in: directory) }
    let stream = try LoggedStream(
      [
        "--source", node, "--size", "640x360", "--controls", "gain=77", "--controls", "gain_automatic=0", "--controls",
        "brightness=99",
      ], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    // A thread of their own sets them.
    var read: [Substring] = []
    let isSet = try eventually {
      read = try Subprocess.run(["v4l2-ctl", "-d", node, "-C", "gain,gain_automatic,brightness"], in: directory)
        .outputText.split(separator: "\n")
      return Set(read).isSuperset(of: ["gain: 77", "gain_automatic: 0", "brightness: 99"])
    }
    #expect(isSet, "\(read) \(stream.program.errorSoFar)")
    let json = try ctl(stream, "--json", in: directory)
    #expect(json.outputText.contains(#""set_by":"configuration""#), "\(json.outputText) \(json.error)")
    _ = try stream.finish()
  }
}
