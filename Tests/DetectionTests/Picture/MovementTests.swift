import Detection
import Foundation
import Media
import TestSupport
import Testing

/// The movement detector, with rooms that are drawn here.
@Suite struct MovementTests {
  /// A picture of a room with the noise of a sensor.
  private final class Room {
    let size: PictureSize
    let luma: UnsafeMutablePointer<UInt8>
    let stride: Int
    var random = SeededGenerator(seed: 5)
    var brightness = 0.0
    var noise = 3.0
    /// A rectangle of another brightness: a child.
    var child: (x: Int, y: Int, width: Int, height: Int, brightness: Int)?

    init(width: Int = 1280, height: Int = 720) {
      size = PictureSize(width: width, height: height)
      stride = width + 32
      luma = .allocate(capacity: stride * height * 3 / 2)
      luma.initialize(repeating: 128, count: stride * height * 3 / 2)
    }

    deinit { luma.deallocate() }

    func planes() -> NV12Planes {
      // Noise from a table: a picture has a million samples.
      let table = (0..<4096).map { _ in
        Int((Double(random.unit()) + Double(random.unit()) + Double(random.unit())) * noise)
      }
      for row in 0..<size.height {
        var place = Int(random.next() & 4095)
        for column in 0..<size.width {
          var value = 70 + 60 * column / size.width + (row / 90 % 2) * 20
          if let child, (child.x..<child.x + child.width).contains(column),
            (child.y..<child.y + child.height).contains(row)
          {
            value = child.brightness
          }
          place = (place + 1) & 4095
          value = Int(Double(value) * (1 + brightness)) + table[place]
          luma[row * stride + column] = UInt8(max(0, min(255, value)))
        }
      }
      return NV12Planes(
        size: size, luma: luma, lumaStride: stride, chroma: luma + stride * size.height, chromaStride: stride)
    }
  }

  /// The seconds at which movement begins, of pictures at five a second.
  private static func movements(
    _ settings: MovementDetector.Settings = .init(), seconds: Double, room: Room = Room(),
    _ change: (Room, Double) -> Void
  ) -> [Double] {
    var grid = LumaGrid()
    var detector = MovementDetector(settings)
    var begun: [Double] = []
    var was = false
    for look in 0..<Int(seconds * 5) {
      let time = Double(look) / 5
      change(room, time)
      grid.measure(room.planes())
      detector.note(grid, at: time)
      if detector.since != nil, !was { begun.append(time) }
      was = detector.since != nil
    }
    return begun
  }

  @Test(arguments: MovementSensitivity.allCases)
  func `a still room does not move, whatever the camera's noise`(sensitivity: MovementSensitivity) {
    for noise in [0, 3, 8] as [Double] {
      let room = Room()
      room.noise = noise
      #expect(Self.movements(.init(sensitivity: sensitivity), seconds: 20, room: room) { _, _ in } == [], "\(noise)")
    }
  }

  @Test(arguments: [
    PictureSize(width: 1280, height: 720), PictureSize(width: 320, height: 240), PictureSize(width: 640, height: 480),
  ])
  func `a child that moves is seen within a second`(size: PictureSize) {
    let room = Room(width: size.width, height: size.height)
    let found = Self.movements(seconds: 12, room: room) { room, time in
      let step = Int(max(0, time - 5) * Double(size.width) / 40)
      room.child = (size.width / 3 + step, size.height / 3, size.width / 10, size.height / 8, 170)
    }
    #expect(found.count == 1 && found.first.map { (5...6.2).contains($0) } == true, "\(found)")
  }

  @Test func `a lamp and the camera's exposure are no movement`() {
    let found = Self.movements(seconds: 30) { room, time in
      // On at 6, off at 12, dusk from 16 on.
      room.brightness = time >= 6 && time < 12 ? 0.5 : time >= 16 ? -0.03 * (time - 16) : 0
    }
    #expect(found == [], "\(found)")
  }

  @Test func `what has moved and lies still is no movement any more`() {
    var wasSeen = false
    var grid = LumaGrid()
    var detector = MovementDetector(.init())
    let room = Room()
    for look in 0..<100 {
      let time = Double(look) / 5
      if time >= 5 { room.child = (400 + Int(min(time, 8) * 20), 300, 120, 90, 170) }
      grid.measure(room.planes())
      detector.note(grid, at: time)
      if detector.since != nil { wasSeen = true }
    }
    let since = detector.since
    #expect(wasSeen && since == nil)
  }

  @Test func `a masked part of the picture does not count`() throws {
    let mask = try #require(MovementMask(x: 0, y: 0, width: 1, height: 0.5))
    func move(_ top: Int) -> (Room, Double) -> Void {
      { room, time in if time >= 5 { room.child = (300 + Int(time * 40), top, 150, 100, 200) } }
    }
    #expect(Self.movements(.init(masks: [mask]), seconds: 10, move(100)) == [])
    #expect(Self.movements(.init(masks: [mask]), seconds: 10, move(500)).count == 1)
    #expect(
      MovementMask(x: 0.5, y: 0, width: 0.6, height: 1) == nil && MovementMask(x: 0, y: 0, width: 0, height: 1) == nil)
  }

  @Test func `a covered lens is dark, and a room at night is not`() {
    var grid = LumaGrid()
    let room = Room()
    room.brightness = -0.85
    grid.measure(room.planes())
    let (night, mean) = (grid.isDark, grid.mean)
    #expect(!night && mean < 32)
    (room.brightness, room.noise) = (-1, 6)
    grid.measure(room.planes())
    let covered = grid.isDark
    #expect(covered)
  }

  /// The cost of a picture, printed; the limit is ten times as wide as the goal.
  @Test func `a picture of 1080p costs less than a millisecond`() {
    let room = Room(width: 1920, height: 1080)
    let planes = room.planes()
    var grid = LumaGrid()
    var detector = MovementDetector(.init())
    let began = threadTime()
    for look in 0..<100 {
      grid.measure(planes)
      detector.note(grid, at: Double(look) / 5)
    }
    let milliseconds = (threadTime() - began) / .milliseconds(100)
    print("movement: \(String(format: "%.3f", milliseconds)) ms for a picture of 1080p")
    #expect(milliseconds < 3)
  }
}
