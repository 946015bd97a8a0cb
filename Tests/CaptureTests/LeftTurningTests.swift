import Capture
import Media
import Platform
import Testing

/// Sources that leave rotation to the encoder.
@Suite struct LeftTurningTests {
  private static let size = PictureSize(width: 98, height: 50)
  private static let quarter = Orientation(.quarter)

  /// Returns the samples of the next frame, and the rotation that it still needs.
  private static func take(_ source: some VideoSource, _ interrupt: borrowing Interrupt) throws -> (Shot, Orientation) {
    while true {
      switch try source.next(interrupt: interrupt) {
      case .frame(let frame): return (Shot(frame), frame.orientation)
      case .dropped: continue
      case .idle: continue
      case .ended: throw SystemFailure("no picture", errorNumber: 5)
      }
    }
  }

  @Test(arguments: [Y4MFile.Pacing.maximum, .realtime])
  func `a clip's pictures are rotated here only if the encoder does not rotate`(pacing: Y4MFile.Pacing) throws {
    let clip = try Clip(testClip(Self.size, "yuv420p", frames: 4))
    let upright = try TurningTests.expected(clip.path, .upright)
    let turned = try TurningTests.expected(clip.path, Self.quarter)
    let file = try Y4MFile(path: clip.path, pacing: pacing, loops: 50)
    #expect(file.format.turnsApart)
    let offer = TurnOffer()
    file.leaveTurning(to: offer)
    let interrupt = try Interrupt()
    try file.start()
    file.orient(Self.quarter)
    // What is offered for the other aspect is of no use.
    offer.set(OrientationSet(Self.quarter), for: Self.size)
    for isOffered in [false, true, false, true] {
      offer.set(isOffered ? OrientationSet(Self.quarter) : [], for: Self.quarter.size(of: Self.size))
      let (shot, later) = try Self.take(file, interrupt)
      let number = try #require((isOffered ? upright : turned).firstIndex { $0.looksLike(shot) })
      #expect(later == (isOffered ? Self.quarter : .upright), "\(number)")
    }
    // Another rotation than the one that is offered.
    file.orient(Orientation(.threeQuarters))
    let (shot, later) = try Self.take(file, interrupt)
    #expect(later == .upright)
    #expect(shot.size == Self.quarter.size(of: Self.size))
    file.stop()
  }

  @Test func `the synthetic camera draws upright if the encoder rotates`() throws {
    let camera = try SyntheticCamera(size: Self.size, frameRate: .thirty)
    #expect(camera.format.turnsApart)
    let offer = TurnOffer()
    camera.leaveTurning(to: offer)
    let interrupt = try Interrupt()
    camera.start()
    for orientation in Orientation.all {
      camera.orient(orientation)
      for isOffered in [true, false] {
        offer.set(isOffered ? OrientationSet(orientation) : [], for: orientation.size(of: Self.size))
        let (shot, later) = try Self.take(camera, interrupt)
        #expect(later == (isOffered ? orientation : .upright))
        #expect(camera.orientation == orientation && camera.turningFailure == nil)
        #expect(shot.size == (isOffered ? Self.size : orientation.size(of: Self.size)))
      }
    }
  }

  @Test func `if neither encoder nor converter can rotate, a message says so and pictures stay as before`() throws {
    // No pool has room for none: stands for memory that is not there.
    let pool = try FramePool(size: Self.size, capacity: 1)
    let converter = try OrientedConverter(from: .nv12, size: Self.size, upright: pool, capacity: 0)
    let offer = TurnOffer()
    converter.offer = offer
    let mirrored = Orientation(.none, mirrored: true)
    converter.orient(mirrored)
    #expect(converter.rotationPlan() == (mirrored, .upright))
    converter.orient(Self.quarter)
    for _ in 0..<2 {
      offer.set(OrientationSet(Self.quarter), for: Self.quarter.size(of: Self.size))
      #expect(converter.rotationPlan() == (.upright, Self.quarter))
      #expect(converter.lastOrientation == Self.quarter && converter.failure == nil)
      offer.set([], for: Self.quarter.size(of: Self.size))
      for _ in 0..<3 { #expect(converter.rotationPlan() == (mirrored, .upright)) }
      #expect(converter.lastOrientation == mirrored && converter.failure is FramePoolError)
    }
  }

  @Test func `an offer is of each aspect and orientation by itself`() {
    let offer = TurnOffer()
    let (wide, tall) = (Self.size, Self.quarter.size(of: Self.size))
    #expect(Orientation.all.allSatisfy { !offer.covers($0, for: wide) && !offer.covers($0, for: tall) })
    for orientation in Orientation.all {
      offer.set(OrientationSet(orientation), for: tall)
      #expect(Orientation.all.filter { offer.covers($0, for: tall) } == [orientation])
      #expect(Orientation.all.allSatisfy { !offer.covers($0, for: wide) })
    }
  }
}
