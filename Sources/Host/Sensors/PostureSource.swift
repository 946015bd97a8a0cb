package import Platform

/// A source of the device's posture and its changes. One thread uses it.
package protocol PostureSource: AnyObject {
  /// The source's name, for the log.
  var name: String { get }

  /// Waits until the posture is known or changes; returns nil where `interrupt` came first.
  ///
  /// - Throws: ``SensorError``, once for each fault. After an error that is not final, the next call continues to wait.
  func next(interrupt: borrowing Interrupt) throws(SensorError) -> DevicePosture?
}

/// A posture source that polls an accelerometer.
package final class AccelerometerWatch: PostureSource {
  /// The accelerometer's name.
  package var name: String { "accelerometer \(accelerometer.name)" }

  /// The time between two readings: a fifth of the debounce time.
  package static let interval = Duration(seconds: 0.05)

  private let accelerometer: Accelerometer
  private var detector: OrientationDetector
  private var due = Instant.zero
  private var isFailing = false

  /// Creates a source that polls `accelerometer`.
  package init(_ accelerometer: Accelerometer, limits: OrientationDetector.Limits = OrientationDetector.Limits()) {
    self.accelerometer = accelerometer
    detector = OrientationDetector(limits: limits)
  }

  /// Polls until the posture changes.
  ///
  /// - Throws: ``SensorError``.
  package func next(interrupt: borrowing Interrupt) throws(SensorError) -> DevicePosture? {
    while interrupt.wait(until: due) {
      let now = Instant.now()
      due = now + Self.interval
      if let sample = try sample(), let changed = try detector.note(sample, at: now) { return changed }
    }
    return nil
  }

  /// Returns a reading; nil where reading fails. A failure may be temporary and is reported once.
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

/// The sources of postures, best first.
package enum OrientationSensor {
  /// Opens `iio-sensor-proxy` where it runs and has an accelerometer; otherwise the accelerometer itself.
  ///
  /// The proxy takes precedence because it supports other kinds of sensors and the quirks of their drivers.
  ///
  /// - Parameters:
  ///   - root: The mount point of sysfs.
  ///   - udev: The directory of udev's database; nil for the usual one with the usual `root`, else for none.
  ///   - busAddress: The D-Bus address of the system bus; nil for the usual one.
  ///   - patience: The longest wait for an answer of the proxy.
  ///   - limits: The limits for the accelerometer itself.
  /// - Throws: ``SensorError`` of the accelerometer, where neither is available.
  package static func open(
    root: String = "/sys", udev: String? = nil, busAddress: String? = nil, patience: Duration = SensorProxy.patience,
    limits: OrientationDetector.Limits = OrientationDetector.Limits()
  ) throws(SensorError) -> any PostureSource {
    // Most machines have no proxy: its absence is no failure, and the accelerometer's own error is the useful one.
    if let proxy = try? SensorProxy(busAddress: busAddress, patience: patience) { return proxy }
    return AccelerometerWatch(try Accelerometer.first(root: root, udev: udev), limits: limits)
  }
}
