import Glibc
public import Media

/// Accelerations into postures: a state machine without a clock or a device of its own.
///
/// A new posture must be clear (hysteresis in angle) and last (debounce in time), so that neither a shake nor a slow
/// tilt makes it flap. On the table there is no up in the picture, and the last posture stays.
public struct OrientationDetector: Sendable {
  /// What counts as clear, lasting and broken.
  public struct Limits: Hashable, Sendable {
    /// How long a new posture must last.
    public var debounce = MediaTime(seconds: 0.25)
    /// How far gravity may be from a posture's own direction for a change to it, in degrees in the plane of the
    /// picture. Postures meet at 45: the rest is hysteresis.
    public var clearAngle = 30.0
    /// How far gravity may lean out of the plane of the picture, in degrees; beyond that the device lies flat.
    public var flatAngle = 60.0
    /// Which magnitudes can be gravity, in m/s²; others are a shake or a fall.
    public var plausible = 5.0...15.0
    /// How long zeros or implausible magnitudes may last.
    public var faultTime = MediaTime(seconds: 3)
    /// How long readings may stay the same to the last bit.
    public var stuckTime = MediaTime(seconds: 120)
    /// The longest time between two samples that still belong together.
    public var gap = MediaTime(seconds: 1)

    /// The defaults.
    public init() {}
  }

  /// The limits.
  public let limits: Limits
  /// The posture now; nil until the first one is clear.
  public private(set) var posture: DevicePosture?

  private var candidate: (posture: DevicePosture, since: MediaTime)?
  private var last: (sample: Acceleration, time: MediaTime)?
  private var sameSince = MediaTime.zero
  private var badSince: MediaTime?
  private var hasTold = false

  /// One that knows nothing yet.
  public init(limits: Limits = Limits()) {
    self.limits = limits
  }

  /// Takes a sample, in m/s², that was measured at `time`.
  ///
  /// - Returns: The posture where it has changed; nil otherwise.
  /// - Throws: ``SensorError/zeros(seconds:)``, ``SensorError/implausible(magnitude:seconds:)`` or
  ///   ``SensorError/stuck(seconds:)``, once for each time that the sensor goes wrong; the posture stays. A sample
  ///   that is not finite is as implausible as can be.
  public mutating func note(_ sample: Acceleration, at time: MediaTime) throws(SensorError) -> DevicePosture? {
    if let last, time < last.time || time - last.time > limits.gap { forget(at: time) }
    let isSame = last?.sample == sample
    if !isSame { sameSince = time }
    last = (sample, time)

    let magnitude = sample.isFinite ? sample.magnitude : .infinity
    guard limits.plausible.contains(magnitude) else {
      candidate = nil
      try fail(magnitude, at: time)
      return nil
    }
    badSince = nil
    if isSame, time - sameSince >= limits.stuckTime {
      if !hasTold {
        hasTold = true
        throw .stuck(seconds: limits.stuckTime.seconds)
      }
    } else {
      hasTold = false
    }
    return settle(nearest(to: sample, magnitude: magnitude), at: time)
  }

  private mutating func fail(_ magnitude: Double, at time: MediaTime) throws(SensorError) {
    let since = badSince ?? time
    if badSince == nil {
      badSince = time
      hasTold = false
    }
    guard !hasTold, time - since >= limits.faultTime else { return }
    hasTold = true
    let seconds = limits.faultTime.seconds
    throw magnitude == 0 ? .zeros(seconds: seconds) : .implausible(magnitude: magnitude, seconds: seconds)
  }

  /// The clock jumped or the machine slept: what came before proves nothing about now.
  private mutating func forget(at time: MediaTime) {
    candidate = nil
    badSince = nil
    sameSince = time
    last = nil
  }

  private mutating func settle(_ found: DevicePosture?, at time: MediaTime) -> DevicePosture? {
    guard let found, found != posture else {
      candidate = nil
      return nil
    }
    guard let candidate, candidate.posture == found else {
      candidate = (found, time)
      return nil
    }
    guard time - candidate.since >= limits.debounce else { return nil }
    self.candidate = nil
    posture = found
    return found
  }

  /// The posture that a sample speaks for, or nil where it speaks for none clearly.
  private func nearest(to sample: Acceleration, magnitude: Double) -> DevicePosture? {
    let degrees = 180 / Double.pi
    let inPlane = (sample.x * sample.x + sample.y * sample.y).squareRoot()
    guard atan2(abs(sample.z), inPlane) * degrees <= limits.flatAngle else { return nil }
    let upright: DevicePosture = sample.y < 0 ? .normal : .bottomUp
    let lying: DevicePosture = sample.x > 0 ? .leftUp : .rightUp
    let fromUpright = atan2(abs(sample.x), abs(sample.y)) * degrees
    let (found, angle) = fromUpright <= 45 ? (upright, fromUpright) : (lying, 90 - fromUpright)
    // The first posture has none to flap with.
    return posture == nil || angle <= limits.clearAngle ? found : nil
  }
}
