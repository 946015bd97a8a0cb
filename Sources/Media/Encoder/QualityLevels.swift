/// The quality levels of hardware: 1 for the best pictures, ``count`` for the fastest.
public struct QualityLevels: Hashable, Sendable {
  /// The number of levels, at least 2.
  public var count: Int
  /// The level of the last picture; nil for the driver's own choice.
  public var present: Int?
  /// `true` if the driver has refused another level in mid-stream: only another encoder has one.
  public var isFixed: Bool

  /// Creates levels.
  public init(count: Int, present: Int? = nil, isFixed: Bool = false) {
    (self.count, self.present, self.isFixed) = (count, present, isFixed)
  }
}
