/// A requested value of a control: `brightness=10`.
public struct ControlAssignment: Hashable, Sendable {
  /// The control's name, as v4l2-ctl writes it.
  public let name: String
  /// The value, as ``CameraControl/value(_:)`` reads it.
  public let value: String

  /// Creates an assignment of `value` to the control called `name`. Neither is checked yet.
  public init(name: String, value: String) { (self.name, self.value) = (name, value) }

  /// Refuses flips and rotation. The camera sets those controls to rotate its pictures, and restores them: two writers
  /// would undo each other's work.
  ///
  /// - Throws: ``CameraControlError/turning(name:)``.
  public static func requireSettable(_ name: String) throws(CameraControlError) {
    if ["horizontal_flip", "vertical_flip", "rotate"].contains(name) { throw .turning(name: name) }
  }
}
