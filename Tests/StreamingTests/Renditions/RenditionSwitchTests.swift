import Media
import Platform
import Streaming
import TestSupport
import Testing

/// The change of one stream between two renditions, picture by picture.
@Suite struct RenditionSwitchTests {
  private static let interval = Duration.milliseconds(33)

  private static func time(_ number: Int) -> Instant { Instant(seconds: 100) + interval * Int64(number) }

  /// A stream, and what it has taken: the rendition and the number of each picture.
  private struct Stream {
    var change = RenditionSwitch(frameInterval: RenditionSwitchTests.interval)
    var announced: Int?
    var isLosing = false
    private(set) var taken: [String] = []
    private var last: Instant?

    init() {}

    /// Offers a picture. `identifier` is that of a key frame; nil for any other picture.
    mutating func offer(_ source: Rendition, _ number: Int, key identifier: Int? = nil) {
      // An SPS of baseline with log2_max_frame_num_minus4 of 0; a slice header of an IDR picture: ue(0), ue(7), ue(0),
      // frame_num in four bits, ue(idr_pic_id).
      let slice: [UInt8] =
        switch identifier {
        case nil: [0x41, 0x9a, 0x00]
        case 0: [0x65, 0b1000_1000, 0b1000_0100, 0x80]
        default: [0x65, 0b1000_1000, 0b1000_0010, 0x80]
        }
      let sets: [[UInt8]] = identifier == nil ? [] : [[0x67, 66, 0xc0, 30, 0b1110_0000], [0x68, 0xce]]
      withNALUnits(sets + [slice]) { units in
        let unit = AccessUnit(
          nalUnits: units, isKeyFrame: identifier != nil, timestamp: RenditionSwitchTests.time(number),
          captured: RenditionSwitchTests.time(number))
        if identifier != nil { #expect(unit.idrPictureID == identifier) }
        let isTaken = change.takes(
          unit, of: source, keyFrameTime: announced.map(RenditionSwitchTests.time), after: last, isLosing: isLosing,
          at: RenditionSwitchTests.time(number))
        guard isTaken else { return }
        taken.append("\(source == .full ? "F" : "s")\(number)")
        last = unit.timestamp
      }
    }

    mutating func want(_ rendition: Rendition, _ number: Int) {
      change.want(rendition, at: RenditionSwitchTests.time(number))
    }
  }

  @Test func `the stream has each picture once when it changes to small ones, and when it changes back`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.offer(.full, 1)
    stream.want(.small, 1)
    #expect(!stream.change.isSmall)
    // The full picture of a frame comes before its small one.
    stream.offer(.full, 2)
    stream.offer(.small, 2)
    stream.announced = 3
    stream.offer(.full, 3)
    #expect(stream.change.isSmall && stream.change.present == .full)
    stream.offer(.full, 4)
    stream.offer(.small, 3, key: 0)
    #expect(stream.change.present == .small && stream.change.waitsSince == nil)
    stream.offer(.small, 4)
    stream.offer(.full, 5)
    stream.offer(.small, 5)
    stream.want(.full, 5)
    stream.offer(.full, 6)
    stream.offer(.small, 6)
    stream.offer(.full, 7, key: 1)
    stream.offer(.small, 7)
    stream.offer(.full, 8)
    stream.offer(.small, 8, key: 1)
    #expect(stream.taken == ["F0", "F1", "F2", "s3", "s4", "s5", "s6", "F7", "F8"])
    #expect(!stream.change.isSmall)
    let lost = stream.change.takeLost()
    #expect(lost == 0)
  }

  @Test func `a small key frame that was announced too late is none to change at`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.want(.small, 0)
    // An older announcement, and one whose full picture has left.
    stream.announced = 0
    stream.offer(.full, 1)
    stream.announced = 1
    stream.offer(.full, 2)
    stream.offer(.small, 1, key: 1)
    stream.offer(.small, 2)
    #expect(stream.taken == ["F0", "F1", "F2"] && stream.change.waitsSince != nil)
    stream.announced = 3
    stream.offer(.full, 3)
    stream.offer(.small, 3, key: 1)
    #expect(stream.taken.last == "s3")
  }

  @Test func `two key frames in a row differ in their identifiers`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 1)
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    stream.offer(.small, 1, key: 1)
    stream.offer(.small, 2)
    #expect(stream.taken == ["F0"], "the same identifier as the picture before")
    stream.offer(.small, 3, key: 0)
    #expect(stream.taken == ["F0", "s3"])
    // Both pictures that came in neither rendition are counted, once.
    let lost = [stream.change.takeLost(), stream.change.takeLost()]
    #expect(lost == [2, 0])
    // What lies between two of them does not count for a viewer that has not got it.
    stream.offer(.small, 4)
    stream.want(.full, 4)
    stream.isLosing = true
    stream.offer(.full, 5, key: 0)
    #expect(stream.taken.last == "s4")
    stream.isLosing = false
    stream.offer(.full, 5, key: 0)
    #expect(stream.taken.last == "F5")
  }

  @Test func `small pictures that come after the return to full ones are counted as lost`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    stream.offer(.small, 1, key: 1)
    stream.want(.full, 1)
    // So late that the return no longer waits for them.
    for number in 2...94 { stream.offer(.full, number) }
    stream.offer(.full, 95, key: 0)
    #expect(stream.taken == ["F0", "s1", "F95"])
    let before = stream.change.takeLost()
    for number in 93...95 { stream.offer(.small, number) }
    stream.offer(.full, 96)
    stream.offer(.small, 96)
    let lost = stream.change.takeLost()
    #expect(before == 0 && lost == 2)
  }

  @Test func `an announced key frame that cannot be taken, or does not come, is to be requested again`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 1)
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    #expect(!stream.change.lacksKeyFrame)
    stream.offer(.small, 1, key: 1)
    #expect(stream.change.lacksKeyFrame && stream.taken == ["F0"], "the identifier of the picture before")
    stream.offer(.full, 2)
    // The next one was lost before its encoder.
    stream.announced = 3
    stream.offer(.full, 3)
    #expect(!stream.change.lacksKeyFrame)
    stream.offer(.small, 2)
    #expect(!stream.change.lacksKeyFrame)
    stream.offer(.small, 4)
    #expect(stream.change.lacksKeyFrame)
    stream.announced = 5
    stream.offer(.full, 5)
    stream.offer(.small, 5, key: 0)
    #expect(!stream.change.lacksKeyFrame && stream.taken == ["F0", "s5"])
  }

  @Test func `a stream of a slow camera returns at the next full key frame`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.want(.small, 0)
    stream.announced = 2
    // Half of the nominal frame rate.
    stream.offer(.full, 2)
    stream.offer(.small, 2, key: 1)
    stream.offer(.small, 4)
    stream.want(.full, 4)
    // The small picture of the frame before is still missing.
    stream.offer(.full, 8, key: 0)
    #expect(stream.taken.last == "s4")
    stream.offer(.small, 6)
    stream.offer(.full, 8, key: 0)
    #expect(stream.taken.last == "F8")
  }

  @Test func `a stream that parts directly after a key frame takes no other one with its identifier`() {
    var stream = Stream()
    stream.change = RenditionSwitch(frameInterval: Self.interval, after: (1, true))
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    stream.offer(.small, 1, key: 1)
    #expect(stream.taken.isEmpty)
    stream.offer(.small, 2, key: 0)
    #expect(stream.taken == ["s2"])
  }

  @Test func `a full key frame waits for the small pictures before it, but for three seconds at most`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    stream.offer(.small, 1, key: 1)
    stream.offer(.small, 2)
    stream.want(.full, 2)
    // The small encoder is late.
    stream.offer(.full, 4, key: 1)
    stream.offer(.small, 3)
    stream.offer(.small, 4)
    #expect(stream.taken.last == "s4")
    stream.offer(.full, 5, key: 0)
    #expect(stream.taken.last == "F5")
    stream.want(.small, 5)
    stream.announced = 6
    stream.offer(.full, 6)
    stream.offer(.small, 6, key: 1)
    stream.offer(.small, 7)
    stream.want(.full, 7)
    stream.offer(.full, 97, key: 0)
    #expect(stream.taken.last == "s7")
    stream.offer(.full, 100, key: 0)
    #expect(stream.taken.last == "F100")
  }

  @Test func `a full key frame that was captured before the request is none to change at`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    stream.offer(.small, 1, key: 1)
    for number in 2...6 { stream.offer(.small, number) }
    stream.want(.full, 8)
    stream.offer(.full, 7, key: 0)
    #expect(stream.taken.last == "s6", "its encoder had another bitrate")
    stream.offer(.small, 7)
    stream.offer(.small, 8)
    stream.offer(.full, 9, key: 1)
    #expect(stream.taken.last == "F9")
  }

  @Test func `a stream that lacks full pictures already takes the small key frame, even where it is to return`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    stream.want(.full, 1)
    stream.offer(.full, 2)
    stream.offer(.small, 1, key: 1)
    stream.offer(.small, 2)
    #expect(stream.change.waitsSince != nil)
    stream.offer(.full, 3, key: 0)
    #expect(stream.taken == ["F0", "s1", "s2", "F3"])
  }

  @Test func `a stream that gives up goes on with full pictures`() {
    var stream = Stream()
    stream.offer(.full, 0, key: 0)
    stream.want(.small, 0)
    stream.announced = 1
    stream.offer(.full, 1)
    #expect(stream.change.leavesOutSince == RenditionSwitchTests.time(1))
    stream.change.giveUp()
    stream.offer(.full, 2)
    #expect(stream.taken == ["F0", "F2"])
    #expect(stream.change.wanted == .full && stream.change.waitsSince == nil)
  }
}
