import Glibc
package import Platform

/// A state machine that derives postures from accelerations, without a clock or a device of its own.
///
/// A new posture must be clear (hysteresis in angle) and last (debounce in time), so that neither a shake nor a slow
/// tilt makes it flap. While the device lies flat, the picture has no upper edge, and the last posture stays.
package struct OrientationDetector: Sendable {
  /// The detector's limits for clear, lasting and faulty readings.
  package struct Limits: Hashable, Sendable {
    /// The time that a new posture must last.
    package var debounce = Duration(seconds: 0.25)
    /// The largest angle between gravity and a new posture's own direction, in degrees in the plane of the picture.
    /// Postures meet at 45 degrees: the difference is the hysteresis.
    package var clearAngle = 30.0
    /// The largest angle between gravity and the plane of the picture, in degrees; beyond it the device lies flat.
    package var flatAngle = 60.0
    /// The magnitudes that can be gravity, in m/s²; other magnitudes are a shake or a fall.
    package var plausible = 5.0...15.0
    /// The time for which zeros or implausible magnitudes are tolerated.
    package var faultTime = Duration(seconds: 3)
    /// The time for which bit-identical readings are tolerated.
    package var stuckTime = Duration(seconds: 120)
    /// The longest time between two related samples.
    package var gap = Duration(seconds: 1)

    /// Creates the default limits.
    package init() {}
  }

  /// The limits.
  package let limits: Limits
  /// The current posture; nil until the first one is clear.
  package private(set) var posture: DevicePosture?

  private var candidate: (posture: DevicePosture, since: Instant)?
  private var last: (sample: Acceleration, time: Instant)?
  private var sameSince = Instant.zero
  private var badSince: Instant?
  private var hasTold = false

  /// Creates a detector without a posture.
  package init(limits: Limits = Limits()) {
    self.limits = limits
  }

  /// Takes a sample, in m/s², that was measured at `time`.
  ///
  /// - Returns: The posture where it has changed; nil otherwise.
  /// - Throws: ``SensorError/zeros(seconds:)``, ``SensorError/implausible(magnitude:seconds:)`` or
  ///   ``SensorError/stuck(seconds:)``, once for each fault of the sensor; the posture stays. A sample that is not
  ///   finite counts as implausible.
  package mutating func note(_ sample: Acceleration, at time: Instant) throws(SensorError) -> DevicePosture? {
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

  private mutating func fail(_ magnitude: Double, at time: Instant) throws(SensorError) {
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

  /// Forgets the earlier samples: after a jump of the clock or a sleep of the machine they do not count.
  private mutating func forget(at time: Instant) {
    candidate = nil
    badSince = nil
    sameSince = time
    last = nil
  }

  private mutating func settle(_ found: DevicePosture?, at time: Instant) -> DevicePosture? {
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

  /// Returns the posture that a sample indicates, or nil where it indicates none clearly.
  private func nearest(to sample: Acceleration, magnitude: Double) -> DevicePosture? {
    let degrees = 180 / Double.pi
    let inPlane = (sample.x * sample.x + sample.y * sample.y).squareRoot()
    guard atan2(abs(sample.z), inPlane) * degrees <= limits.flatAngle else { return nil }
    let upright: DevicePosture = sample.y < 0 ? .normal : .bottomUp
    let lying: DevicePosture = sample.x > 0 ? .leftUp : .rightUp
    let fromUpright = atan2(abs(sample.x), abs(sample.y)) * degrees
    let (found, angle) = fromUpright <= 45 ? (upright, fromUpright) : (lying, 90 - fromUpright)
    // The first posture needs no hysteresis.
    return posture == nil || angle <= limits.clearAngle ? found : nil
  }
}
