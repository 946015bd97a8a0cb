import CLinux
import Capture
import Glibc
import Media
import Testing

/// The controls as a driver describes them, and the values that follow.
@Suite struct CameraControlTests {
  private func query(
    _ answers: [(id: UInt32, type: UInt32, name: String, flags: UInt32)], maximum: Int64 = 10,
    menu: (UInt32, UInt32) -> CameraControl.MenuAnswer? = { _, _ in nil }
  ) -> [CameraControl] {
    var rest = answers[...]
    return CameraControl.list { query in
      guard let answer = rest.popFirst() else { return false }
      query.id = answer.id
      query.type = answer.type
      query.flags = answer.flags
      query.maximum = maximum
      withUnsafeMutableBytes(of: &query.name) { $0.copyBytes(from: Array(answer.name.utf8).prefix(32)) }
      return true
    } menu: {
      menu($0, $1)
    }
  }

  private static let integer = V4L2_CTRL_TYPE_INTEGER.rawValue

  @Test func `names are those of v4l2-ctl`() {
    for (title, name) in [
      ("White Balance, Automatic", "white_balance_automatic"), ("Exposure Time, Absolute", "exposure_time_absolute"),
      ("Pan (Absolute)", "pan_absolute"), ("  3A Lock--x", "3a_lock_x"), ("Gain", "gain"),
    ] {
      #expect(CameraControl.name(of: title) == name)
    }
  }

  @Test func `a driver that never ends, goes backwards or has menus without end is not followed`() {
    var count: UInt32 = 0
    let endless = CameraControl.list { query in
      count += 1
      query.id = count
      query.type = Self.integer
      withUnsafeMutableBytes(of: &query.name) { $0[0] = 0x61 }
      return true
    } menu: { _, _ in
      nil
    }
    #expect(endless.count == 512 && count == 512)
    let same = query([(5, Self.integer, "a", 0), (5, Self.integer, "b", 0), (6, Self.integer, "c", 0)])
    #expect(same.map(\.name) == ["a"])
    var asked = 0
    let menus = query([(5, V4L2_CTRL_TYPE_MENU.rawValue, "m", 0)], maximum: .max) { _, index in
      asked += 1
      return CameraControl.MenuAnswer(name: [0x1b, 0x5b, 0x41], value: 0)
    }
    #expect(asked == 128 && menus[0].items.count == 128)
    // An escape sequence does not reach the terminal.
    #expect(menus[0].items[0].text == "?[A")
    #expect(query([(5, V4L2_CTRL_TYPE_MENU.rawValue, "m", 0)], maximum: -5).count == 1)
  }

  @Test func `classes, texts, structures, disabled controls and those without a name are left out`() {
    let kept = query([
      (1, V4L2_CTRL_TYPE_CTRL_CLASS.rawValue, "Camera Controls", 0), (2, V4L2_CTRL_TYPE_STRING.rawValue, "s", 0),
      (3, V4L2_CTRL_TYPE_U8.rawValue, "u", 0), (4, Self.integer, "disabled", nightjar_V4L2_CTRL_FLAG_DISABLED),
      (5, Self.integer, "\u{1b}", 0), (6, 77, "unknown", 0), (7, Self.integer, "Gain", 0),
    ])
    #expect(kept.map(\.name) == ["gain"])
  }

  @Test(arguments: [
    ("brigthness", "brightness" as String?), ("Gain", "gain"), ("brightness", nil), ("foo", nil), ("gian", "gain"),
    ("white_balance_auto", "white_balance_automatic"),
  ])
  func `a name is told that was probably meant, and no other`(name: String, meant: String?) {
    let names = ["volume", "gain", "white_balance_automatic"] + (meant == "brightness" ? ["brightness"] : [])
    let error = CameraControlError.unknown(name: name, among: names)
    #expect(error == .unknown(name: name, nearest: meant))
    #expect(error.description.contains(meant.map { "the nearest is \($0)" } ?? "nightjar devices --controls lists"))
  }

  @Test(arguments: [
    ("brightness", "10", 10 as Int64?), ("brightness", "-64", -64), ("brightness", "65", nil),
    ("brightness", "1.5", nil),
    ("brightness", "", nil), ("white_balance_temperature", "4010", 4010), ("white_balance_temperature", "4011", nil),
    ("white_balance_automatic", "off", 0), ("white_balance_automatic", "true", 1),
    ("white_balance_automatic", "2", nil),
    ("auto_exposure", "1", 1), ("auto_exposure", "Aperture Priority Mode", 3), ("auto_exposure", "manual_mode", 1),
    ("auto_exposure", "2", nil), ("auto_exposure", "0", nil),
  ])
  func `values are read, and refused with what may be`(name: String, text: String, expected: Int64?) throws {
    let control = try #require(ScriptedControls().controls().first { $0.name == name })
    do throws(CameraControlError) {
      #expect(try control.value(text) == expected)
    } catch {
      let refusal = "\(name) cannot be '\(text)': choose \(control.limits)"
      #expect(expected == nil && error.description == refusal, "\(error)")
    }
  }

  @Test func `ranges at the ends of 64 bits overflow nowhere`() {
    let wide = CameraControl(
      identifier: 1, title: "w", kind: .integer64, minimum: .min, maximum: .max, step: .max, defaultValue: 0)
    #expect(wide.permits(.max) && wide.permits(.min))
    let odd = CameraControl(
      identifier: 1, title: "w", kind: .bitmask, minimum: 0, maximum: -1, step: 0, defaultValue: 0)
    #expect(odd.permits(0xFFFF_FFFF) && !odd.permits(-1) && odd.step == 1)
  }
}
