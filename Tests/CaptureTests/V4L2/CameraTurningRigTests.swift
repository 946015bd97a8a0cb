import Capture
import Foundation
import Media
import PixelConversion
import Platform
import TestSupport
import Testing

/// Rotated pictures of a real driver. The suite's name ends as those of the other tests for the rig do.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct CameraTurningRigTests {
  private static let size = PictureSize(width: 640, height: 360)

  /// Runs `body` while vivid number `index` shows a still picture that no rotation leaves as it is.
  private static func withStill(_ index: Int, _ body: (_ node: String, TemporaryDirectory) throws -> Void) throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(index)
    // 4: squares of all colours. 2: no text.
    try Vivid.set(node, "test_pattern=4", in: directory)
    try Vivid.set(node, "osd_text_mode=2", in: directory)
    defer {
      for control in ["test_pattern=0", "osd_text_mode=0", "horizontal_flip=0", "vertical_flip=0"] {
        try? Vivid.set(node, control, in: directory)
      }
    }
    try body(node, directory)
  }

  private static func camera(
    _ node: String, _ format: String, fixed: Orientation? = nil, capacity: Int = FramePool.defaultCapacity
  ) throws -> V4L2Camera {
    try V4L2Camera(
      path: node, request: FormatRequest(size: size, frameRate: .thirty, format: PixelFormat(format)),
      poolCapacity: capacity, fixedOrientation: fixed)
  }

  /// The next event that is neither idle, nor a loss by the driver, nor a picture that a newer one has overtaken.
  private static func event(_ camera: V4L2Camera) throws -> CaptureEvent {
    let interrupt = try Interrupt()
    let deadline = Date(timeIntervalSinceNow: 30)
    while Date() < deadline {
      switch try camera.next(interrupt: interrupt) {
      case .frame(let frame): return .frame(frame)
      case .idle: break
      case .dropped(.driver, _): break
      case .dropped(.captureLate, _): break
      case .dropped(let cause, let count): return .dropped(cause, count: count)
      case .ended: return .ended
      }
    }
    throw SystemFailure("no picture", errorNumber: ETIMEDOUT)
  }

  private static func shot(_ camera: V4L2Camera) throws -> Shot {
    guard case .frame(let frame) = try event(camera) else { throw SystemFailure("a loss", errorNumber: EIO) }
    return Shot(frame)
  }

  /// The values of the controls for both flips.
  private static func flips(_ node: String, in directory: TemporaryDirectory) throws -> [String] {
    let text = try Subprocess.run(
      ["v4l2-ctl", "-d", node, "-C", "horizontal_flip,vertical_flip"], in: directory
    ).outputText
    return text.split(separator: "\n").compactMap { $0.split(separator: " ").last.map(String.init) }
  }

  /// The share of samples that differ visibly: edges of colours may lie between two samples.
  private static func difference(_ one: Shot, _ other: Shot) -> Double {
    guard one.size == other.size else { return 1 }
    let all = zip(one.luma + one.chroma, other.luma + other.chroma)
    return Double(all.count { abs(Int($0) - Int($1)) > 8 }) / Double(one.luma.count + one.chroma.count)
  }

  @Test(arguments: [(0, "NV12"), (1, "NV12"), (1, "NM12"), (0, "YUYV"), (0, "YU12"), (0, "RGB3")], [false, true])
  func `a camera rotates between any two pictures`(node: (index: Int, format: String), isPrepared: Bool) throws {
    try Self.withStill(node.index) { path, _ in
      let camera = try Self.camera(path, node.format)
      #expect(camera.mounting == .upright && camera.warnings.isEmpty)
      if isPrepared { try camera.prepareTurning() }
      try camera.start()
      let upright = try Self.shot(camera)
      // Otherwise the rest says nothing.
      for orientation in Orientation.all where orientation != .upright {
        #expect(try !upright.rotated(orientation).looksLike(upright), "\(orientation)")
      }
      var last = upright.timestamp
      for orientation in Orientation.all + Orientation.all.reversed() + [Orientation(.half), .upright] {
        camera.orient(orientation)
        let shot = try Self.shot(camera)
        #expect(try upright.rotated(orientation).looksLike(shot), "\(orientation)")
        #expect(shot.timestamp > last && shot.captured <= .now())
        last = shot.timestamp
        // Without a copy as long as nothing is rotated.
        #expect(shot.isInDriverMemory == (upright.isInDriverMemory && orientation == .upright))
      }
      #expect(upright.isInDriverMemory == (node.format == "NV12"))
      #expect(camera.turningFailure == nil && camera.format.size == Self.size)
      camera.stop()
    }
  }

  @Test(arguments: ["NV12", "YUYV"])
  func `rotated frames that are held do not starve the driver`(format: String) throws {
    try Self.withStill(0) { path, _ in
      let camera = try Self.camera(path, format, capacity: 2)
      camera.orient(Orientation(.quarter))
      try camera.start()
      guard case .frame(let held) = try Self.event(camera), case .frame(let other) = try Self.event(camera) else {
        Issue.record("no frames")
        return
      }
      // Far more than the driver has buffers.
      for _ in 0..<20 {
        guard case .dropped(.poolExhausted, 1) = try Self.event(camera) else {
          Issue.record("not exhausted")
          return
        }
      }
      // All rotations share the memory.
      camera.orient(Orientation(.half))
      _ = consume other
      #expect(try Self.shot(camera).size == Self.size)
      camera.orient(Orientation(.threeQuarters))
      _ = consume held
      #expect(try Self.shot(camera).size == PictureSize(width: 360, height: 640))
      camera.stop()
    }
  }

  @Test(arguments: [Orientation(.half), Orientation(.none, mirrored: true), Orientation(.half, mirrored: true)])
  func `the driver's flips equal our half rotations and mirrors, without a copy`(fixed: Orientation) throws {
    try Self.withStill(0) { path, directory in
      var upright: Shot?
      do {
        let camera = try Self.camera(path, "NV12")
        try camera.start()
        upright = try Self.shot(camera)
        camera.stop()
      }
      let expected = try #require(upright).rotated(fixed)
      #expect(Self.difference(try #require(upright), expected) > 0.2)
      let camera = try Self.camera(path, "NV12", fixed: fixed)
      #expect(camera.format.conversion == "no copy" && camera.warnings.isEmpty)
      let horizontal = fixed != Orientation(.half, mirrored: true)
      let vertical = fixed.rotation == .half
      let set = [horizontal ? "1" : "0", vertical ? "1" : "0"]
      #expect(try Self.flips(path, in: directory) == set)
      for _ in 0..<2 {
        try camera.start()
        #expect(try Self.flips(path, in: directory) == set)
        guard case .frame(let frame) = try Self.event(camera) else {
          Issue.record("no frame")
          return
        }
        let shot = Shot(frame)
        #expect(shot.isInDriverMemory)
        #expect(Self.difference(shot, expected) < 0.02)
        // It is still rotated as is wanted, whatever the driver does meanwhile.
        for orientation in Orientation.all {
          camera.orient(orientation)
          let turned = try Self.shot(camera)
          #expect(try shot.rotated(fixed.inverse.then(orientation)).looksLike(turned), "\(orientation)")
        }
        camera.orient(fixed)
        camera.stop()
        // The driver's memory is out.
        #expect(try Self.flips(path, in: directory) == set)
        _ = consume frame
        #expect(try Self.flips(path, in: directory) == ["0", "0"])
      }
    }
  }

  @Test func `controls that were set before stay in force, and come back`() throws {
    try Self.withStill(0) { path, directory in
      try Vivid.set(path, "vertical_flip=1", in: directory)
      do {
        let plain = try Self.camera(path, "NV12")
        try plain.start()
        let before = try Self.shot(plain)
        plain.stop()
        #expect(try Self.flips(path, in: directory) == ["0", "1"])
        let camera = try Self.camera(path, "NV12", fixed: Orientation(.half))
        #expect(try Self.flips(path, in: directory) == ["1", "0"])
        try camera.start()
        #expect(try Self.difference(Self.shot(camera), before.rotated(Orientation(.half))) < 0.02)
      }
      // By the camera's end alone.
      #expect(try Self.flips(path, in: directory) == ["0", "1"])
      // And by a start that comes to nothing.
      #expect(throws: (any Error).self) {
        try V4L2Camera(
          path: path, request: FormatRequest(size: PictureSize(width: 642, height: 362)),
          fixedOrientation: Orientation(.half))
      }
      #expect(try Self.flips(path, in: directory) == ["0", "1"])
    }
  }

  @Test func `a fixed rotation by 90 degrees is done in software`() throws {
    try Self.withStill(0) { path, directory in
      let camera = try Self.camera(path, "NV12", fixed: Orientation(.quarter))
      #expect(camera.format.conversion == "libyuv" && camera.format.size == Self.size)
      #expect(try Self.flips(path, in: directory) == ["0", "0"])
      try camera.start()
      let turned = try Self.shot(camera)
      camera.orient(.upright)
      #expect(try Self.shot(camera).rotated(Orientation(.quarter)).looksLike(turned))
      camera.stop()
    }
  }
}
