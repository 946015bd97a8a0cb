/// The requested values of a camera's controls while it is streamed.
public struct ControlProfile: Hashable, Sendable {
  /// The values by day, or at all times.
  public var values: [ControlAssignment]
  /// `true` fixes exposure, gain, white balance and focus once they have settled.
  public var locksSensor: Bool
  /// The values that differ at night.
  public var night: NightProfile?

  /// Creates a profile. An empty one leaves the camera unchanged.
  public init(values: [ControlAssignment] = [], locksSensor: Bool = false, night: NightProfile? = nil) {
    (self.values, self.locksSensor, self.night) = (values, locksSensor, night)
  }

  /// The values by day and at night.
  var all: [ControlAssignment] { values + (night?.values ?? []) }
}
