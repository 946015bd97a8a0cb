import Glibc
import Host
import Media
import Platform
import TestSupport
import Testing

/// The state machine, fed with what a hand does to a device.
@Suite struct OrientationDetectorTests {
  /// Samples each 50 ms, and the changes with the seconds at which they came.
  struct Hand {
    var detector = OrientationDetector()
    var seconds = 0.0
    var changes: [DevicePosture] = []
    var times: [Double] = []
    var errors: [SensorError] = []
    private var tremble = 0

    /// Gravity for a device rotated clockwise by `turn` degrees and leant back by `lean`, with a sensor's noise.
    mutating func hold(_ turn: Double, lean: Double = 0, for duration: Double) {
      let (turn, lean) = (turn * .pi / 180, lean * .pi / 180)
      tremble += 1
      let inPlane = 9.81 * cos(lean)
      feed(Acceleration(x: inPlane * sin(turn), y: -inPlane * cos(turn), z: -9.81 * sin(lean)), for: duration)
    }

    mutating func feed(_ sample: Acceleration, noise: Double = 0.01, for duration: Double) {
      for _ in 0..<max(1, Int((duration / 0.05).rounded())) {
        tremble += 1
        var noisy = sample
        noisy.x += tremble.isMultiple(of: 2) ? noise : 0
        do {
          if let change = try detector.note(noisy, at: Instant(seconds: seconds)) {
            changes.append(change)
            times.append(seconds)
          }
        } catch {
          errors.append(error)
        }
        seconds += 0.05
      }
    }
  }

  @Test(arguments: [
    (0, -9.81, DevicePosture.normal), (9.81, 0, .leftUp), (0, 9.81, .bottomUp), (-9.81, 0, .rightUp),
  ])
  func `each axis has the posture that iio-sensor-proxy gives it`(x: Double, y: Double, expected: DevicePosture) {
    var hand = Hand()
    hand.feed(Acceleration(x: x, y: y, z: 0), for: 1)
    #expect(hand.changes == [expected])
    #expect(hand.detector.posture == expected)
  }

  @Test func `a rotation is reported once, after the debounce`() {
    var hand = Hand()
    hand.hold(0, for: 1)
    let turned = hand.seconds
    hand.hold(90, for: 2)
    #expect(hand.changes == [.normal, .leftUp])
    let delay = (hand.times.last ?? 0) - turned
    #expect((0.25...0.35).contains(delay), "\(delay)")
  }

  @Test func `a slow tilt to and fro changes once each way, well past the diagonal`() {
    var hand = Hand()
    hand.hold(0, for: 1)
    // A degree each 50 ms: slower than the debounce, so that the angle alone decides.
    for angle in 0...90 { hand.hold(Double(angle), for: 0.05) }
    let up = hand.changes
    var angleBack = 0.0
    for angle in (0...90).reversed() {
      hand.hold(Double(angle), for: 0.05)
      if hand.changes.count > up.count, angleBack == 0 { angleBack = Double(angle) }
    }
    #expect(up == [.normal, .leftUp])
    #expect(hand.changes == [.normal, .leftUp, .normal])
    #expect((15...31).contains(angleBack), "\(angleBack)")
  }

  @Test func `trembling about the diagonal does not flap`() {
    var hand = Hand()
    hand.hold(0, for: 1)
    for step in 0..<400 { hand.hold(45 + (step.isMultiple(of: 2) ? 12 : -12), for: 0.05) }
    #expect(hand.changes == [.normal])
    hand.hold(90, for: 1)
    for step in 0..<400 { hand.hold(45 + (step.isMultiple(of: 3) ? 12 : -12), for: 0.05) }
    #expect(hand.changes == [.normal, .leftUp])
  }

  @Test func `a shake changes nothing, however it points`() {
    var hand = Hand()
    hand.hold(0, for: 1)
    for step in 0..<40 {
      let sign = step.isMultiple(of: 2) ? 1.0 : -1.0
      hand.feed(Acceleration(x: sign * 30, y: -9.81, z: 5), for: 0.05)
      hand.feed(Acceleration(x: sign * 9, y: -2, z: 0), for: 0.1)
    }
    hand.hold(0, for: 1)
    #expect(hand.changes == [.normal])
    #expect(hand.errors.isEmpty)
  }

  @Test func `a knock shorter than the debounce changes nothing`() {
    var hand = Hand()
    hand.hold(0, for: 1)
    for _ in 0..<20 {
      hand.hold(90, for: 0.2)
      hand.hold(0, for: 0.3)
    }
    #expect(hand.changes == [.normal])
  }

  @Test func `a device that lies flat keeps the last posture, wherever it is rotated`() {
    var hand = Hand()
    hand.hold(90, for: 1)
    for turn in stride(from: 0.0, to: 360, by: 15) {
      hand.hold(turn, lean: 80, for: 0.5)
      hand.hold(turn, lean: -85, for: 0.5)
    }
    #expect(hand.changes == [.leftUp])
    hand.hold(0, lean: 30, for: 1)
    #expect(hand.changes == [.leftUp, .normal])
  }

  @Test func `flat from the start there is no posture until it is lifted`() {
    var hand = Hand()
    hand.feed(Acceleration(x: 0.1, y: 0.1, z: -9.8), for: 5)
    #expect(hand.detector.posture == nil)
    hand.hold(180, for: 1)
    #expect(hand.changes == [.bottomUp])
  }

  @Test func `upside down and back is two changes`() {
    var hand = Hand()
    hand.hold(0, for: 1)
    hand.hold(180, for: 1)
    hand.hold(0, for: 1)
    #expect(hand.changes == [.normal, .bottomUp, .normal])
  }

  @Test func `zeros are told once, and the posture stays and comes back`() {
    var hand = Hand()
    hand.hold(90, for: 1)
    hand.feed(Acceleration(x: 0, y: 0, z: 0), noise: 0, for: 10)
    #expect(hand.errors == [.zeros(seconds: 3)])
    #expect(hand.detector.posture == .leftUp)
    hand.hold(0, for: 1)
    hand.feed(Acceleration(x: 0, y: 0, z: 0), noise: 0, for: 10)
    #expect(hand.errors == [.zeros(seconds: 3), .zeros(seconds: 3)])
    #expect(hand.changes == [.leftUp, .normal])
  }

  @Test func `a fall is no fault`() {
    var hand = Hand()
    hand.hold(90, for: 1)
    hand.feed(Acceleration(x: 0, y: 0, z: 0), for: 1)
    hand.hold(90, for: 1)
    #expect(hand.errors.isEmpty && hand.changes == [.leftUp])
  }

  @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, 1024])
  func `nonsense is told once, and the posture stays`(value: Double) {
    var hand = Hand()
    hand.hold(90, for: 1)
    hand.feed(Acceleration(x: value, y: 0, z: 0), for: 10)
    #expect(hand.errors.count == 1)
    guard case .implausible(let magnitude, seconds: 3)? = hand.errors.first else {
      Issue.record("\(hand.errors)")
      return
    }
    // Whatever it measured can be said.
    let shown = magnitude < 1e9 ? Int(magnitude.rounded()) : 1_000_000_000
    #expect(
      hand.errors.map(\.description)
        == ["the accelerometer measured \(shown) m/s² for 3.0 s instead of 10, gravity: check its scale"])
    #expect(hand.detector.posture == .leftUp)
  }

  @Test func `readings that never change are told once, until they do`() {
    var hand = Hand()
    hand.feed(Acceleration(x: 9.81, y: 0, z: 0), noise: 0, for: 300)
    #expect(hand.errors == [.stuck(seconds: 120)])
    #expect(hand.changes == [.leftUp])
    hand.hold(0, for: 1)
    #expect(hand.changes == [.leftUp, .normal])
  }

  @Test func `after a sleep of the machine a posture must last anew`() throws {
    var detector = OrientationDetector()
    let (upright, lying) = (Acceleration(x: 0, y: -9.8, z: 0.1), Acceleration(x: 9.8, y: 0, z: 0.2))
    for step in 0..<20 { _ = try detector.note(upright, at: Instant(seconds: Double(step) * 0.05)) }
    #expect(detector.posture == .normal)
    #expect(try detector.note(lying, at: Instant(seconds: 1)) == nil)
    #expect(try detector.note(lying, at: Instant(seconds: 3600)) == nil)
    // The clock went back.
    #expect(try detector.note(lying, at: Instant(seconds: 10)) == nil)
    #expect(try detector.note(lying, at: Instant(seconds: 10.3)) == .leftUp)
  }

  @Test func `a camera that faces the user rotates in the other direction`() {
    #expect(DevicePosture.allCases.map { $0.rotation().degrees } == [0, 180, 90, 270])
    #expect(DevicePosture.allCases.map { $0.rotation(facing: .user).degrees } == [0, 180, 270, 90])
  }
}
