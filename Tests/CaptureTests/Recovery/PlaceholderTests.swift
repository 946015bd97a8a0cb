import Capture
import Glibc
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// The picture that stands for a camera.
@Suite struct PlaceholderTests {
  private static let size = PictureSize(width: 640, height: 360)
  private static let text = PlaceholderPicture.Text(
    headline: "camera disconnected", since: "since 12:03", obstacle: "", clock: "14:37:07")

  private static func shot(_ picture: PlaceholderPicture) -> Shot {
    Shot(picture.frame(color: .bt709, timestamp: .zero))
  }

  @Test func `the placeholder shows its text within the picture`() throws {
    let picture = try PlaceholderPicture(size: Self.size)
    #expect(picture.show(Self.text))
    let shot = Self.shot(picture)
    #expect(Set(shot.luma) == [40, 220] && Set(shot.chroma) == [128])
    // Three lines, each between rows of background.
    let rows = (0..<360).map { row in shot.luma[row * 640..<(row + 1) * 640].contains(220) }
    let dots = zip(rows, rows.dropFirst()).filter { $0 != $1 }.count
    #expect(rows.first == false && rows.last == false && dots >= 6, "\(dots)")
    let columns = (0..<640).filter { column in (0..<360).contains { shot.luma[$0 * 640 + column] == 220 } }
    #expect(columns.first ?? 0 > 20 && columns.last ?? 640 < 620)
  }

  @Test func `the clock changes the picture, the same text does not`() throws {
    let picture = try PlaceholderPicture(size: Self.size)
    #expect(picture.show(Self.text))
    let first = Self.shot(picture)
    #expect(picture.show(Self.text))
    #expect(Self.shot(picture).looksLike(first))
    var later = Self.text
    later.clock = "14:37:08"
    #expect(picture.show(later))
    #expect(!Self.shot(picture).looksLike(first))
  }

  @Test func `nothing is painted into memory that a frame lies in`() throws {
    let picture = try PlaceholderPicture(size: Self.size)
    #expect(picture.show(Self.text))
    let old = picture.frame(color: .bt709, timestamp: .zero)
    let before = Shot(old)
    var text = Self.text
    text.clock = "14:37:08"
    #expect(picture.show(text))
    let second = picture.frame(color: .bt709, timestamp: .zero)
    text.clock = "14:37:09"
    #expect(!picture.show(text), "both are in use")
    #expect(Shot(old).looksLike(before))
    _ = consume second
    // The one with the newest text is lent no more, but shown; only the other may be painted.
    #expect(!picture.show(text))
    _ = consume old
    #expect(picture.show(text))
  }

  @Test(arguments: [(16, 16), (16, 2000), (4000, 32)])
  func `odd sizes have a picture too`(width: Int, height: Int) throws {
    let picture = try PlaceholderPicture(size: PictureSize(width: width, height: height))
    #expect(picture.show(Self.text))
    #expect(Self.shot(picture).luma.first == 40)
  }

  @Test func `setting the wall clock changes the text and no timestamp`() throws {
    let wall = Mutex<Int64>(1_700_000_000_000_000_000)
    let format = SourceFormat(
      size: Self.size, frameRate: .thirty, pixelFormat: .nv12, color: .bt709, conversion: "no copy")
    let bridge = try PlaceholderBridge(format: format) { wall.withLock { $0 } }
    let interrupt = try Interrupt()
    let bell = try Interrupt()
    let begin = Instant.now()
    bridge.begin(after: begin)
    var condition = CameraCondition(.disconnected, since: .now())
    condition.losses = 1
    var shots: [Shot] = []
    for hours in [0, -1, 25] as [Int64] {
      wall.withLock { $0 += hours * 3_600_000_000_000 }
      let isDue = bridge.wait(for: bell.fileDescriptor, interrupt: interrupt)
      #expect(isDue)
      guard let frame = bridge.frame(condition, orientation: .upright, obstacle: "") else {
        throw SystemFailure("no placeholder", errorNumber: ENOMEM)
      }
      shots.append(Shot(frame))
    }
    #expect(!shots[0].looksLike(shots[1]) && !shots[1].looksLike(shots[2]))
    let steps = zip(shots, shots.dropFirst()).map { $1.timestamp - $0.timestamp }
    // None is later than now, however long the machine held this thread up.
    #expect(steps.allSatisfy { $0 > .zero } && shots.allSatisfy { $0.timestamp >= begin }, "\(steps)")
    #expect(shots.allSatisfy { $0.timestamp <= .now() }, "\(steps)")
    #expect(bridge.wallTime(of: .now()).date >= "2023-11-15")
  }
}
