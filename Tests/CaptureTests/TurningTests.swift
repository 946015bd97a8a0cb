import Capture
import Foundation
import Media
import PixelConversion
import Platform
import Synchronization
import TestSupport
import Testing

/// A picture without padding, of what size it is, and when.
struct Shot: Equatable {
  var size: PictureSize
  var luma: [UInt8]
  var chroma: [UInt8]
  var timestamp = Instant.zero
  var captured = Instant.zero
  var isInDriverMemory = false
  var slot = 0

  init(_ frame: borrowing Frame) {
    let planes = frame.planes
    size = planes.size
    (luma, chroma) = packed(planes)
    timestamp = frame.timestamp
    captured = frame.captured
    isInDriverMemory = frame.dmaBuffer != nil
    slot = frame.slot
  }

  init(size: PictureSize, nv12: some Collection<UInt8>) {
    self.size = size
    luma = Array(nv12.prefix(size.pixels))
    chroma = Array(nv12.dropFirst(size.pixels))
  }

  /// Returns `true` if the samples are the same, whenever they were taken.
  func looksLike(_ other: Shot) -> Bool {
    size == other.size && luma == other.luma && chroma == other.chroma
  }

  /// The same rotated by `orientation`, by the pixel converter, which has tests of its own against ffmpeg.
  func rotated(_ orientation: Orientation) throws -> Shot {
    let pool = try FramePool(size: orientation.size(of: size), capacity: 1)
    guard let frame = pool.checkout(color: .bt709, timestamp: timestamp, captured: captured) else {
      throw SystemFailure("no frame", errorNumber: ENOMEM)
    }
    try (luma + chroma).withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return }
      try PixelConverter(from: .nv12, size: size, orientation: orientation).convert(
        SourcePicture(first: SourcePlane(base: base, stride: size.width, byteCount: bytes.count)), into: frame.planes)
    }
    return Shot(frame)
  }
}

/// Sources whose pictures are rotated.
@Suite struct TurningTests {
  static let size = PictureSize(width: 98, height: 50)

  /// ffmpeg's filters for an orientation.
  static func filter(_ orientation: Orientation) -> String {
    let turn =
      switch orientation.rotation {
      case .none: "null"
      case .quarter: "transpose=clock"
      case .half: "hflip,vflip"
      case .threeQuarters: "transpose=cclock"
      }
    return orientation.isMirrored ? "\(turn),hflip" : turn
  }

  /// All pictures of the clip at `path` as ffmpeg rotates them.
  static func expected(_ path: String, _ orientation: Orientation) throws -> [Shot] {
    let raw = try output(
      of: "ffmpeg -nostdin -v error -i \(path) -vf \(filter(orientation)) -pix_fmt nv12 -f rawvideo -")
    let count = Self.size.pixels * 3 / 2
    return stride(from: 0, to: raw.count, by: count).map {
      Shot(size: orientation.size(of: Self.size), nv12: raw[$0..<$0 + count])
    }
  }

  static func shot(of file: Y4MFile, _ interrupt: borrowing Interrupt) throws -> Shot {
    guard case .frame(let frame) = try file.next(interrupt: interrupt) else {
      throw SystemFailure("a picture was lost", errorNumber: EIO)
    }
    return Shot(frame)
  }

  @Test(arguments: [false, true])
  func `a clip is rotated as by ffmpeg, and rotated again between any two pictures`(isPrepared: Bool) throws {
    let order = Orientation.all + Orientation.all.reversed() + [.upright, Orientation(.half), .upright]
    let clip = try Clip(testClip(Self.size, "yuv420p", frames: order.count))
    let expected = try Dictionary(
      uniqueKeysWithValues: Orientation.all.map { ($0, try Self.expected(clip.path, $0)) })
    let file = try Y4MFile(path: clip.path, pacing: .maximum, loops: 1)
    #expect(file.format.size == Self.size)
    if isPrepared {
      try file.prepareTurning()
      try file.prepareTurning()
    }
    let interrupt = try Interrupt()
    try file.start()
    for (index, orientation) in order.enumerated() {
      file.orient(orientation)
      let shot = try Self.shot(of: file, interrupt)
      #expect(try #require(expected[orientation])[index].looksLike(shot), "\(index): \(orientation)")
      #expect(shot.timestamp == Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
    }
    #expect(file.turningFailure == nil)
    #expect(file.format.size == Self.size)
    guard case .ended = try file.next(interrupt: interrupt) else {
      Issue.record("not ended")
      return
    }
  }

  @Test(arguments: [Orientation(.quarter), Orientation(.half)])
  func `rotated pictures without memory are lost and counted, until there is memory`(orientation: Orientation) throws {
    let clip = try Clip(testClip(Self.size, "yuv420p", frames: 50, rate: "50"))
    let file = try Y4MFile(path: clip.path, capacity: 2)
    file.orient(orientation)
    let interrupt = try Interrupt()
    try file.start()
    func event() throws -> CaptureEvent {
      while true {
        switch try file.next(interrupt: interrupt) {
        case .frame(let frame): return .frame(frame)
        case .dropped(let cause, let count) where cause != .driver: return .dropped(cause, count: count)
        case .dropped: continue
        case .idle: return .idle
        case .ended: return .ended
        }
      }
    }
    guard case .frame(let first) = try event(), case .frame(let second) = try event() else {
      Issue.record("no frames")
      return
    }
    #expect(first.planes.size == orientation.size(of: Self.size) && first.timestamp < second.timestamp)
    for _ in 0..<3 {
      guard case .dropped(.poolExhausted, 1) = try event() else {
        Issue.record("a frame out of nowhere")
        return
      }
    }
    // The other aspect has the same memory.
    let other = orientation.swapsSides ? Orientation.upright : Orientation(.threeQuarters)
    file.orient(other)
    guard case .dropped(.poolExhausted, 1) = try event() else {
      Issue.record("a frame of the other aspect out of nowhere")
      return
    }
    let last = second.timestamp
    _ = consume second
    guard case .frame(let third) = try event() else {
      Issue.record("the memory did not come back")
      return
    }
    #expect(third.planes.size == other.size(of: Self.size) && third.timestamp > last)
    #expect(third.slot != first.slot)
  }

  /// The scene of the synthetic camera, without the clock.
  private static func scene(_ number: Int64, _ size: PictureSize) throws -> Shot {
    let pool = try FramePool(size: size, capacity: 1)
    guard let frame = pool.checkout(color: .bt709, timestamp: .zero, captured: .zero) else {
      throw SystemFailure("no frame", errorNumber: ENOMEM)
    }
    let pattern = TestPattern(size: size)
    pattern.paintBars(into: frame.planes)
    pattern.paintForeground(
      block: pattern.block(atTick: number), number: number, clock: .now(), into: frame.planes)
    return Shot(frame)
  }

  /// Returns the number of samples outside the box of the clock that differ.
  private static func differences(_ one: Shot, _ other: Shot) -> Int {
    let box = TestPattern(size: one.size).box
    let width = one.size.width
    let luma = one.luma.indices.count {
      let (x, y) = ($0 % width, $0 / width)
      let isInBox = (box.x..<box.x + box.width).contains(x) && (box.y..<box.y + box.height).contains(y)
      return !isInBox && one.luma[$0] != other.luma[$0]
    }
    return luma + zip(one.chroma, other.chroma).count { $0 != $1 }
  }

  // All orientations share the memory: what one leaves in it, the next one finds.
  @Test(arguments: [1, 3])
  func `the synthetic camera's scene is whole in every orientation, whatever was before it`(capacity: Int) throws {
    let size = PictureSize(width: 320, height: 180)
    let rate = try #require(FrameRate(100))
    let camera = try SyntheticCamera(size: size, frameRate: rate, capacity: capacity)
    try camera.prepareTurning()
    let interrupt = try Interrupt()
    camera.start()
    let order = [Orientation.upright, Orientation(.half), .upright] + Orientation.all + Orientation.all.reversed()
    var tick: Int64 = 0
    var last = Instant.zero
    for orientation in order + order {
      camera.orient(orientation)
      var shot: Shot?
      while shot == nil {
        switch camera.next(interrupt: interrupt) {
        case .frame(let frame): shot = Shot(frame)
        case .dropped(.driver, let count): tick += Int64(count)
        default:
          Issue.record("no picture")
          return
        }
      }
      let picture = try #require(shot)
      #expect(picture.size == orientation.size(of: size))
      #expect(try Self.differences(picture.rotated(orientation.inverse), Self.scene(tick, size)) == 0, "\(orientation)")
      #expect(picture.timestamp > last && picture.captured == picture.timestamp)
      last = picture.timestamp
      tick += 1
    }
  }

  @Test func `a rotation applies to the picture that the caller waits for`() throws {
    let camera = try SyntheticCamera(size: Self.size, frameRate: try #require(FrameRate(1, 3)))
    let interrupt = try Interrupt()
    camera.start()
    _ = try SyntheticCameraTests.picture(of: camera, interrupt)
    let before = Instant.now()
    let oriented = Mutex<Instant?>(nil)
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) {
      camera.orient(Orientation(.quarter))
      oriented.withLock { $0 = .now() }
    }
    var shot: Shot?
    while shot == nil {
      guard case .frame(let frame) = camera.next(interrupt: interrupt) else { continue }
      // Where the other thread has come late, its rotation is for the next picture.
      if let time = oriented.withLock({ $0 }), frame.timestamp > time { shot = Shot(frame) }
    }
    #expect(Instant.now() > before)
    #expect(shot?.size == PictureSize(width: 50, height: 98))
  }

  @Test func `without memory for a rotation, frames stay as before, and the reason is reported`() throws {
    // No pool has room for none: stands for memory that is not there.
    let pool = try FramePool(size: Self.size, capacity: 1)
    let converter = try OrientedConverter(from: .nv12, size: Self.size, upright: pool, capacity: 0)
    converter.orient(Orientation(.half))
    #expect(converter.orientation() == Orientation(.half) && converter.failure == nil)
    converter.orient(Orientation(.quarter))
    for _ in 0..<3 { #expect(converter.orientation() == Orientation(.half)) }
    guard case .capacity(0)? = converter.failure as? FramePoolError else {
      Issue.record("\(String(describing: converter.failure))")
      return
    }
    #expect(converter.lastOrientation == Orientation(.half))
    // Asked once more, it is tried once more.
    converter.orient(Orientation(.quarter))
    #expect(converter.failure == nil)
    #expect(converter.orientation() == Orientation(.half) && converter.failure != nil)
    #expect(throws: FramePoolError.self) { try converter.prepare() }
    converter.orient(Orientation(.none, mirrored: true))
    #expect(converter.orientation() == Orientation(.none, mirrored: true) && converter.failure == nil)
    converter.orient(Orientation(.threeQuarters))
    #expect(converter.orientation() == Orientation(.none, mirrored: true) && converter.failure != nil)
    converter.orient(Orientation(.none, mirrored: true))
    #expect(converter.orientation() == Orientation(.none, mirrored: true) && converter.failure == nil)
  }

  @Test func `every orientation is found where it stands`() {
    for (index, orientation) in Orientation.all.enumerated() { #expect(orientation.index == index) }
  }

  @Test func `the base orientation applies before the requested one`() throws {
    let pool = try FramePool(size: Self.size, capacity: 1)
    for base in Orientation.all {
      let converter = try OrientedConverter(from: .nv12, size: Self.size, upright: pool, capacity: 1)
      converter.base = base
      for wanted in Orientation.all {
        converter.orient(wanted)
        #expect(converter.orientation() == base.then(wanted))
        #expect(
          converter.checkout(base.then(wanted), color: .bt709, timestamp: .zero, captured: .zero)?.planes.size
            == wanted.size(of: base.size(of: Self.size)))
      }
    }
  }
}
