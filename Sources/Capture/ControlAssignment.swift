/// What a control is to be: `brightness=10`.
public struct ControlAssignment: Hashable, Sendable {
  /// The control's name, as v4l2-ctl writes it.
  public let name: String
  /// Its value, as ``CameraControl/value(_:)`` takes it.
  public let value: String

  /// `value` for the control called `name`, neither of them checked yet.
  public init(name: String, value: String) { (self.name, self.value) = (name, value) }

  /// Refuses flips and rotation, which the camera sets to lay its pictures and gives back: two would undo each other's
  /// work.
  ///
  /// - Throws: ``CameraControlError/turning(name:)``.
  public static func requireSettable(_ name: String) throws(CameraControlError) {
    if ["horizontal_flip", "vertical_flip", "rotate"].contains(name) { throw .turning(name: name) }
  }
}
