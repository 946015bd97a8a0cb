import CLinux
import Glibc
package import Media

/// A half rotation or a mirroring by the driver, through `V4L2_CID_HFLIP`, `V4L2_CID_VFLIP` or `V4L2_CID_ROTATE`. Often the
/// sensor reads its rows in reverse order, which costs nothing.
///
/// The rotation is relative to the controls' values, because an earlier setting had a reason. ``restore()`` or the end
/// of the object restores those values. A killed program cannot restore them; the next one reports that they are set
/// (``ControlledDevice/checkRotation()``). Both steps must happen while the driver has no buffers. Otherwise a sensor whose
/// colour filters swap places with a flip refuses them.
package final class DriverRotation: @unchecked Sendable {
  // Sendable: the camera's thread applies it before there are buffers. After that the thread that returns the last
  // buffer restores it, under the lock of the buffer queue.

  /// A step that one control performs.
  enum Step: Hashable {
    case horizontalFlip
    case verticalFlip
    case halfTurn

    var control: UInt32 {
      switch self {
      case .horizontalFlip: nightjar_V4L2_CID_HFLIP
      case .verticalFlip: nightjar_V4L2_CID_VFLIP
      case .halfTurn: nightjar_V4L2_CID_ROTATE
      }
    }

    /// The control's name in the specification, without `V4L2_CID_`.
    var name: String {
      switch self {
      case .horizontalFlip: "HFLIP"
      case .verticalFlip: "VFLIP"
      case .halfTurn: "ROTATE"
      }
    }

    /// Returns the value that the control must have after `value`.
    func value(after value: CInt) -> CInt {
      self == .halfTurn ? (value + 180) % 360 : value == 0 ? 1 : 0
    }
  }

  /// The requested orientation.
  let orientation: Orientation
  private let device: any ControlledDevice
  /// The earlier values of the controls, in the order in which they were set.
  private var saved: [(step: Step, value: CInt)] = []

  /// Creates a rotation of pictures by `orientation`; ``apply()`` sets it.
  package init(_ orientation: Orientation, device: any ControlledDevice) {
    self.orientation = orientation
    self.device = device
  }

  deinit {
    restore()
  }

  /// The orientation that the driver applies: the requested one, or upright.
  package var applied: Orientation { saved.isEmpty ? .upright : orientation }

  /// Sets the controls if they exist. Does nothing if they are set already.
  ///
  /// - Throws: ``CaptureError/turnRefused(path:control:errorNumber:)`` if the driver offers the control but refuses.
  ///   Then the controls keep their earlier values.
  package func apply() throws(CaptureError) {
    guard saved.isEmpty else { return }
    var refusal: CaptureError?
    for steps in Self.ways(to: orientation) where canMake(steps) {
      do throws(CaptureError) {
        try make(steps)
        return
      } catch {
        restore()
        if refusal == nil { refusal = error }
      }
    }
    if let refusal { throw refusal }
  }

  /// Restores the controls. Idempotent.
  package func restore() {
    while let (step, value) = saved.popLast() { _ = device.set(step.control, to: value) }
  }

  /// Returns the ways to rotate a picture by `orientation`, the simplest first. Returns none for quarter rotations,
  /// which change the driver's format, and for no rotation at all.
  static func ways(to orientation: Orientation) -> [[Step]] {
    switch (orientation.rotation, orientation.isMirrored) {
    case (.half, false): [[.horizontalFlip, .verticalFlip], [.halfTurn]]
    case (.none, true): [[.horizontalFlip], [.verticalFlip, .halfTurn]]
    case (.half, true): [[.verticalFlip], [.horizontalFlip, .halfTurn]]
    default: []
    }
  }

  private func canMake(_ steps: [Step]) -> Bool {
    // At a quarter rotation nothing says whether mirroring happens before or after it. For a half rotation the order makes
    // no difference.
    if orientation.isMirrored, let angle = device.value(of: nightjar_V4L2_CID_ROTATE), !angle.isMultiple(of: 180) {
      return false
    }
    return steps.allSatisfy { step in
      guard let value = device.value(of: step.control) else { return false }
      return device.canSet(step.control, to: step.value(after: value))
    }
  }

  private func make(_ steps: [Step]) throws(CaptureError) {
    for step in steps {
      guard let old = device.value(of: step.control) else { throw refused(step, ENXIO) }
      let new = step.value(after: old)
      let errorNumber = device.set(step.control, to: new)
      guard errorNumber == 0 else { throw refused(step, errorNumber) }
      saved.append((step, old))
      // A driver may accept a value and change it.
      guard device.value(of: step.control) == new else { throw refused(step, ERANGE) }
    }
  }

  private func refused(_ step: Step, _ errorNumber: CInt) -> CaptureError {
    .turnRefused(path: device.path, control: step.name, errorNumber: errorNumber)
  }
}
