import CLinux
import Capture
import Dispatch
import Glibc
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// A camera's controls as uvcvideo has them: what an automatic sets is inactive, refused, and moves by itself.
final class ScriptedControls: CameraControlDevice {
  struct State {
    var values: [UInt32: Int64] = [:]
    /// The values that were set, in order.
    var writes: [String] = []
    /// The errors with which the driver refuses controls, by name.
    var refusals: [String: CInt] = [:]
    /// The values that the driver makes of every other value, by name.
    var alterations: [String: Int64] = [:]
    /// `true` if the camera is set up for its own H.264, and if it has no controls for that.
    var isCoding = false
    var refusesCoding = false
    /// The value toward which an automatic control moves a little at each look.
    var target: Int64 = 250
  }

  let state: Mutex<State>
  /// The semaphore that it waits for while it hangs.
  let hang = Mutex<DispatchSemaphore?>(nil)
  /// `true` if the camera is gone, so that nothing can be read.
  let isGone = Mutex(false)
  private let all: [CameraControl]

  static let autoExposure = nightjar_V4L2_CID_EXPOSURE_AUTO
  static let exposure = nightjar_V4L2_CID_EXPOSURE_ABSOLUTE
  static let autoWhite = nightjar_V4L2_CID_AUTO_WHITE_BALANCE
  static let white = nightjar_V4L2_CID_WHITE_BALANCE_TEMPERATURE
  static let rate = nightjar_V4L2_CID_EXPOSURE_AUTO_PRIORITY

  init() {
    all = [
      CameraControl(
        identifier: nightjar_V4L2_CID_BRIGHTNESS, title: "Brightness", kind: .integer, minimum: -64, maximum: 64,
        step: 1, defaultValue: 0),
      CameraControl(
        identifier: Self.autoWhite, title: "White Balance, Automatic", kind: .boolean, minimum: 0, maximum: 1, step: 1,
        defaultValue: 1),
      CameraControl(
        identifier: Self.white, title: "White Balance Temperature", kind: .integer, minimum: 2000, maximum: 6500,
        step: 10, defaultValue: 4000),
      CameraControl(
        identifier: Self.autoExposure, title: "Auto Exposure", kind: .menu, minimum: 0, maximum: 3, step: 1,
        defaultValue: 3, items: [.init(index: 1, text: "Manual Mode"), .init(index: 3, text: "Aperture Priority Mode")]),
      CameraControl(
        identifier: Self.exposure, title: "Exposure Time, Absolute", kind: .integer, minimum: 3, maximum: 2047,
        step: 1, defaultValue: 156),
      CameraControl(
        identifier: Self.rate, title: "Exposure, Dynamic Framerate", kind: .boolean, minimum: 0, maximum: 1, step: 1,
        defaultValue: 1),
      CameraControl(
        identifier: 0x0098_090D, title: "White Balance, Once", kind: .button, minimum: 0,
        maximum: 0, step: 0, defaultValue: 0),
      CameraControl(
        identifier: 0x0098_0999, title: "Serial", kind: .integer, minimum: 0, maximum: 9, step: 1, defaultValue: 7,
        flags: .readOnly),
    ]
    state = Mutex(State(values: Dictionary(uniqueKeysWithValues: all.map { ($0.identifier, $0.defaultValue) })))
  }

  func controls() -> [CameraControl] {
    hang.withLock { $0 }?.wait()
    return isGone.withLock { $0 } ? [] : state.withLock { Self.look(&$0, all) }
  }

  private static func look(_ state: inout State, _ all: [CameraControl]) -> [CameraControl] {
    if state.values[autoExposure] == 3, let value = state.values[exposure] {
      state.values[exposure] = value + (state.target - value).signum() * min(40, abs(state.target - value))
    }
    return all.map { described($0, state) }
  }

  var codesPictures: Bool { state.withLock { $0.isCoding } }

  func requestKeyFrame() -> Bool {
    state.withLock { state in
      state.writes.append("key frame")
      return !state.refusesCoding
    }
  }

  func setCodedBitrate(_ bitrate: Int) -> Bool {
    state.withLock { state in
      state.writes.append("coded bitrate=\(bitrate)")
      return !state.refusesCoding
    }
  }

  func refreshed(_ control: CameraControl) -> CameraControl? { state.withLock { Self.described(control, $0) } }

  func set(_ control: CameraControl, to value: Int64) -> CInt {
    state.withLock { state in
      state.writes.append("\(control.name)=\(value)")
      if let errorNumber = state.refusals[control.name] { return errorNumber }
      if Self.described(control, state).flags.contains(.inactive) { return EACCES }
      state.values[control.identifier] = state.alterations[control.name] ?? value
      return 0
    }
  }

  func value(_ name: String) -> Int64? {
    guard let control = all.first(where: { $0.name == name }) else { return nil }
    return state.withLock { $0.values[control.identifier] }
  }

  private static func described(_ control: CameraControl, _ state: State) -> CameraControl {
    var control = control
    control.value = control.kind == .button ? nil : state.values[control.identifier]
    let isInactive =
      control.identifier == exposure && state.values[autoExposure] != 1
      || control.identifier == white && state.values[autoWhite] != 0
    if isInactive { control.flags.insert(.inactive) } else { control.flags.remove(.inactive) }
    return control
  }
}

extension ControlWorker {
  /// Looks, with pictures, for six seconds: until the sensor is locked, where it is to be.
  mutating func lookAtPictures(_ core: CameraControls.Core, from begin: Double = 0, minute: Int) throws {
    let pool = try FramePool(size: PictureSize(width: 64, height: 64))
    guard let frame = pool.checkout(color: .bt709, timestamp: .zero, captured: .zero) else {
      Issue.record("no memory")
      return
    }
    for index in 0..<60 {
      for _ in 0..<5 { core.pictures.note(frame.planes, isFullRange: true, at: .zero) }
      look(at: Instant(seconds: begin + Double(index) / 10), minute: minute)
    }
  }
}
