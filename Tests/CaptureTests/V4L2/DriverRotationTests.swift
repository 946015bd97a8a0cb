import CLinux
import Capture
import Glibc
import Media
import Synchronization
import Testing

/// A driver's controls, in memory.
private final class FakeControls: ControlledDevice {
  let path = "/dev/video7"
  private let state: Mutex<[UInt32: CInt]>
  private let refusals: [UInt32: CInt]
  /// Controls that take every value and keep their own.
  private let stubborn: Set<UInt32>

  init(_ values: [UInt32: CInt], refusing refusals: [UInt32: CInt] = [:], stubborn: Set<UInt32> = []) {
    state = Mutex(values)
    self.refusals = refusals
    self.stubborn = stubborn
  }

  var values: [UInt32: CInt] { state.withLock { $0 } }

  func value(of identifier: UInt32) -> CInt? { state.withLock { $0[identifier] } }
  func usualValue(of identifier: UInt32) -> CInt? { values[identifier] == nil ? nil : 0 }
  func canSet(_ identifier: UInt32, to value: CInt) -> Bool { self.value(of: identifier) != nil }
  func set(_ identifier: UInt32, to value: CInt) -> CInt {
    if let errorNumber = refusals[identifier] { return errorNumber }
    if !stubborn.contains(identifier) { state.withLock { $0[identifier] = value } }
    return 0
  }
}

/// Rotations that are left to the driver, and what it says about its sensor.
@Suite struct DriverRotationTests {
  private static let horizontal = nightjar_V4L2_CID_HFLIP
  private static let vertical = nightjar_V4L2_CID_VFLIP
  private static let rotate = nightjar_V4L2_CID_ROTATE
  private static let rotation = nightjar_V4L2_CID_CAMERA_SENSOR_ROTATION

  /// Returns the effect of such controls on a picture: the driver's own order is unknown, and must not matter.
  private static func effect(_ values: [UInt32: CInt]) throws -> Orientation {
    var result = try Orientation(degrees: Int(values[rotate] ?? 0))
    if values[horizontal] == 1 { result = result.then(Orientation(.none, mirrored: true)) }
    if values[vertical] == 1 { result = result.then(Orientation(.half, mirrored: true)) }
    return result
  }

  @Test func `controls that are set already are told, with the mend, and stay`() throws {
    #expect(throws: Never.self) { try FakeControls([Self.horizontal: 0, Self.rotate: 0]).checkRotation() }
    #expect(throws: Never.self) { try FakeControls([:]).checkRotation() }
    let device = FakeControls([Self.horizontal: 0, Self.vertical: 1])
    let error = #expect(throws: CaptureError.self) { try device.checkRotation() }
    #expect(error?.description.hasSuffix("v4l2-ctl -d /dev/video7 -c vertical_flip=0") == true)
    #expect(device.values == [Self.horizontal: 0, Self.vertical: 1])
  }

  @Test(arguments: [
    [horizontal: CInt(0), vertical: 0], [horizontal: 1, vertical: 0], [horizontal: 0, vertical: 0, rotate: 0],
    [horizontal: 0, rotate: 180], [vertical: 1, rotate: 0], [rotate: 0], [rotate: 270], [horizontal: 1], [vertical: 0],
    [horizontal: 1, vertical: 1, rotate: 90], [:],
  ])
  func `the reported orientation equals the effect of the controls, and the controls are restored`(
    controls: [UInt32: CInt]
  ) throws {
    let before = try Self.effect(controls)
    for orientation in Orientation.all {
      let device = FakeControls(controls)
      do {
        let turn = DriverRotation(orientation, device: device)
        try turn.apply()
        try turn.apply()
        #expect(try before.then(turn.applied) == Self.effect(device.values), "\(orientation) of \(controls)")
        #expect(turn.applied == .upright || turn.applied == orientation)
        turn.restore()
        #expect(turn.applied == .upright && device.values == controls)
        // Again after a stop; the end puts them back, too.
        try turn.apply()
      }
      #expect(device.values == controls)
    }
  }

  @Test func `a driver with flips does every half rotation and mirror, and no quarter rotation`() throws {
    for orientation in Orientation.all {
      for controls in [[Self.horizontal: CInt(0), Self.vertical: 0], [Self.horizontal: 0, Self.rotate: 0]] {
        let device = FakeControls(controls)
        let turn = DriverRotation(orientation, device: device)
        try turn.apply()
        #expect(turn.applied == (orientation.swapsSides ? .upright : orientation))
        #expect((device.values == controls) == (orientation.swapsSides || orientation == .upright))
      }
    }
  }

  @Test func `a refusal is one line, and leaves the controls unchanged`() throws {
    let controls = [Self.horizontal: CInt(0), Self.vertical: 0]
    let device = FakeControls(controls, refusing: [Self.vertical: EBUSY])
    let turn = DriverRotation(Orientation(.half), device: device)
    let error = try #require(#expect(throws: CaptureError.self) { try turn.apply() })
    guard case .turnRefused("/dev/video7", "VFLIP", EBUSY) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(error.description.contains("VFLIP") && !error.description.contains("\n"))
    #expect(turn.applied == .upright && device.values == controls)
    // The other way does it.
    let other = FakeControls(
      controls.merging([Self.rotate: 0]) { first, _ in first }, refusing: [Self.vertical: EBUSY])
    let second = DriverRotation(Orientation(.half), device: other)
    try second.apply()
    #expect(second.applied == Orientation(.half) && other.values[Self.rotate] == 180)
    #expect(other.values[Self.horizontal] == 0)
  }

  @Test func `a driver that takes a value and keeps its own has refused`() {
    let device = FakeControls([Self.horizontal: 0, Self.vertical: 0], stubborn: [Self.vertical])
    let turn = DriverRotation(Orientation(.half), device: device)
    #expect(throws: CaptureError.self) { try turn.apply() }
    #expect(turn.applied == .upright && device.values == [Self.horizontal: 0, Self.vertical: 0])
  }

  @Test func `a sensor's mounting is undone, and nonsense is told`() throws {
    // Counter-clockwise degrees.
    for (degrees, expected): (CInt, Rotation) in [
      (0, .none), (90, .threeQuarters), (180, .half), (270, .quarter), (360, .none),
    ] {
      #expect(try FakeControls([Self.rotation: degrees]).mounting() == Orientation(expected))
    }
    #expect(try FakeControls([:]).mounting() == .upright)
    for degrees: CInt in [45, -90, 450, 1, .max, .min] {
      let error = try #require(
        #expect(throws: CaptureError.self) { try FakeControls([Self.rotation: degrees]).mounting() })
      #expect(error.description.contains("\(degrees)") && !error.description.contains("\n"))
    }
  }
}
