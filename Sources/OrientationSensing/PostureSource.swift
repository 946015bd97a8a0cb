public import Media

/// Something that tells how the device is held, each time that this changes. Used by one thread.
public protocol PostureSource: AnyObject {
  /// What it is, for the log.
  var name: String { get }

  /// Waits until the posture is known, or is another; nil where `interrupt` came first.
  ///
  /// - Throws: ``SensorError``, once for each fault. Where it is not final, the next call goes on waiting.
  func next(interrupt: borrowing Interrupt) throws(SensorError) -> DevicePosture?
}

/// An accelerometer that is polled.
public final class AccelerometerWatch: PostureSource {
  /// The accelerometer's name.
  public var name: String { "accelerometer \(accelerometer.name)" }

  /// The time between two readings: five to a debounce.
  public static let interval = MediaTime(seconds: 0.05)

  private let accelerometer: Accelerometer
  private var detector: OrientationDetector
  private var due = MediaTime.zero
  private var isFailing = false

  /// One that polls `accelerometer`.
  public init(_ accelerometer: Accelerometer, limits: OrientationDetector.Limits = OrientationDetector.Limits()) {
    self.accelerometer = accelerometer
    detector = OrientationDetector(limits: limits)
  }

  /// Polls until the posture changes.
  ///
  /// - Throws: ``SensorError``.
  public func next(interrupt: borrowing Interrupt) throws(SensorError) -> DevicePosture? {
    while interrupt.wait(until: due) {
      let now = MediaTime.now()
      due = now + Self.interval
      if let sample = try sample(), let changed = try detector.note(sample, at: now) { return changed }
    }
    return nil
  }

  /// A reading; nil where reading fails, which is told once and may pass.
  private func sample() throws(SensorError) -> Acceleration? {
    do throws(SensorError) {
      let sample = try accelerometer.read()
      isFailing = false
      return sample
    } catch {
      if isFailing, !error.isFinal { return nil }
      isFailing = true
      throw error
    }
  }
}

/// Where postures come from, best first.
public enum OrientationSensor {
  /// `iio-sensor-proxy` where it runs and has an accelerometer; else the accelerometer itself.
  ///
  /// The proxy goes first because it knows sensors of other kinds too, and their drivers' oddities.
  ///
  /// - Parameters:
  ///   - root: Where sysfs is mounted.
  ///   - udev: The directory of udev's database; nil for the usual one with the usual `root`, else for none.
  ///   - busAddress: The D-Bus address of the system bus; nil for the usual one.
  ///   - limits: For the accelerometer itself.
  /// - Throws: ``SensorError`` of the accelerometer, where neither is there.
  public static func open(
    root: String = "/sys", udev: String? = nil, busAddress: String? = nil,
    limits: OrientationDetector.Limits = OrientationDetector.Limits()
  ) throws(SensorError) -> any PostureSource {
    // Most boxes have no proxy: its absence is no failure, and the accelerometer's own error is the one to tell.
    if let proxy = try? SensorProxy(busAddress: busAddress) { return proxy }
    return AccelerometerWatch(try Accelerometer.first(root: root, udev: udev), limits: limits)
  }
}
