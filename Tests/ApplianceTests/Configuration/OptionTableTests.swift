import Appliance
import Media
import Platform
import Testing

/// A small table of every kind.
let table = OptionTable([
  .init("rtsp", .optionalText, .appliance),
  .init("users", .text, .appliance),
  .init("name", .text, .camera(isShared: false)),
  .init("source", .text, .camera(isShared: false)),
  .init("wait", .flag, .camera(isShared: true)),
  .init("load-adaptation", .invertibleFlag, .camera(isShared: true)),
  .init("slices", .integer, .camera(isShared: true)),
  .init("fps", .number, .camera(isShared: true)),
  .init("keyframe-interval", .number, .camera(isShared: true)),
  .init("to", .list, .camera(isShared: false)),
  .init("controls", .table, .camera(isShared: true)),
])

@Suite struct OptionTableTests {
  @Test(arguments: [
    ("bitrat", "bitrate", 1), ("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("ab", "ba", 1),
    ("same", "same", 0),
    ("wiat", "wait", 1), ("Saturday", "Sunday", 3),
  ])
  func `edit distance counts letters put in, left out, exchanged and swapped`(
    left: String, right: String, expected: Int
  ) {
    #expect(EditDistance.between(Array(left.utf8), Array(right.utf8)) == expected)
    #expect(EditDistance.between(Array(right.utf8), Array(left.utf8)) == expected)
  }

  @Test(arguments: [
    ("keyframe_interval", "keyframe-interval" as String?), ("FPS", "fps"), ("wiat", "wait"), ("sorce", "source"),
    ("user", "users"),
    ("loadadaptation", "load-adaptation"), ("slice", "slices"), ("volume", nil), ("brightness", nil), ("foo", nil),
    ("colour", nil), ("", nil),
  ])
  func `the nearest option is the one that was meant, and what is like none has none`(written: String, meant: String?) {
    #expect(table.nearest(to: written)?.name == meant)
  }

  @Test func `a variable is named after its option`() throws {
    #expect(try #require(table["keyframe-interval"]).variable == "NIGHTJAR_KEYFRAME_INTERVAL")
  }
}
