/// What somebody wants a camera's controls to be, for as long as it is streamed.
public struct ControlProfile: Hashable, Sendable {
  /// By day, or always.
  public var values: [ControlAssignment]
  /// Whether exposure, gain, white balance and focus are fixed once they have settled.
  public var locksSensor: Bool
  /// What is otherwise at night.
  public var night: NightProfile?

  /// A profile; without anything it leaves the camera as it is.
  public init(values: [ControlAssignment] = [], locksSensor: Bool = false, night: NightProfile? = nil) {
    (self.values, self.locksSensor, self.night) = (values, locksSensor, night)
  }

  /// By day and at night.
  var all: [ControlAssignment] { values + (night?.values ?? []) }
}
