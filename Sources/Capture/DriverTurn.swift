import CLinux
import Glibc
import Media

/// A half turn or a mirror that the driver makes, by `V4L2_CID_HFLIP`, `V4L2_CID_VFLIP` or `V4L2_CID_ROTATE`: often the
/// sensor reads its rows the other way round, and it costs nothing.
///
/// It is relative to what the controls were: who set them before, did so for a reason. They are given back as they
/// were, by ``restore()`` or at the end. A program that is killed cannot do that; the next one says that they are set
/// (``ControlledDevice/checkTurn()``). Both are to be done while the driver has no buffers: a sensor whose colour
/// filters change places with a flip refuses it otherwise.
final class DriverTurn: @unchecked Sendable {
  // Sendable: the camera's thread applies it before there are buffers; after that it is restored by whoever returns
  // the last of them, under the lock of the buffer queue.

  /// A step that a control makes.
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

    /// The control as the specification has it, without `V4L2_CID_`.
    var name: String {
      switch self {
      case .horizontalFlip: "HFLIP"
      case .verticalFlip: "VFLIP"
      case .halfTurn: "ROTATE"
      }
    }

    /// What the control has to be after `value`.
    func value(after value: CInt) -> CInt {
      self == .halfTurn ? (value + 180) % 360 : value == 0 ? 1 : 0
    }
  }

  /// What is asked for.
  let orientation: Orientation
  private let device: any ControlledDevice
  /// What the controls were, in the order in which they were set.
  private var saved: [(step: Step, value: CInt)] = []

  /// One that lays pictures by `orientation`, once it is applied.
  init(_ orientation: Orientation, device: any ControlledDevice) {
    self.orientation = orientation
    self.device = device
  }

  deinit {
    restore()
  }

  /// What the driver does: all that was asked for, or nothing.
  var applied: Orientation { saved.isEmpty ? .upright : orientation }

  /// Sets the controls, where there are any. Nothing where they are set already.
  ///
  /// - Throws: ``CaptureError/turnRefused(path:control:errorNumber:)`` where the driver offers it, but refuses. Then
  ///   the controls are as they were.
  func apply() throws(CaptureError) {
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

  /// Sets the controls back. Idempotent.
  func restore() {
    while let (step, value) = saved.popLast() { _ = device.set(step.control, to: value) }
  }

  /// The ways to lay a picture by `orientation`, the plainest first; none for quarter turns, which change the
  /// driver's format, and for no turn at all.
  static func ways(to orientation: Orientation) -> [[Step]] {
    switch (orientation.rotation, orientation.isMirrored) {
    case (.half, false): [[.horizontalFlip, .verticalFlip], [.halfTurn]]
    case (.none, true): [[.horizontalFlip], [.verticalFlip, .halfTurn]]
    case (.half, true): [[.verticalFlip], [.horizontalFlip, .halfTurn]]
    default: []
    }
  }

  private func canMake(_ steps: [Step]) -> Bool {
    // On its side, nobody says whether a picture is mirrored before it is turned or behind. A half turn is the same.
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
      // A driver may take a value and make another of it.
      guard device.value(of: step.control) == new else { throw refused(step, ERANGE) }
    }
  }

  private func refused(_ step: Step, _ errorNumber: CInt) -> CaptureError {
    .turnRefused(path: device.path, control: step.name, errorNumber: errorNumber)
  }
}
