package import Platform

/// An error of a sensor for the orientation. The stream continues in the last good orientation.
package enum SensorError: Failure, Hashable {
  /// There is no accelerometer, or none with three axes.
  case noAccelerometer(root: String)
  /// Some axes are missing.
  case axes(device: String, missing: [String])
  /// The system refuses to read a value.
  case read(path: String, errorNumber: CInt)
  /// A value is not a number.
  case notANumber(path: String, text: String)
  /// The mount matrix is invalid: it needs three rows of three numbers and must not be singular.
  case mountMatrix(path: String, text: String)
  /// The sensor measured only zeros for this time.
  case zeros(seconds: Double)
  /// The sensor measured magnitudes that cannot be gravity, in m/s², for this time.
  case implausible(magnitude: Double, seconds: Double)
  /// The sensor measured bit-identical values for this time; a real sensor has noise.
  case stuck(seconds: Double)
  /// The device is gone.
  case vanished(device: String)
  /// The bus is not available or refused, with its own message.
  case bus(String, reason: String)
  /// `iio-sensor-proxy` does not run, or has stopped.
  case noProxy
  /// `iio-sensor-proxy` runs but has no accelerometer.
  case proxyWithoutAccelerometer

  /// `true` if another attempt with the same sensor cannot succeed.
  package var isFinal: Bool {
    switch self {
    case .read, .notANumber, .zeros, .implausible, .stuck: false
    case .noAccelerometer, .axes, .mountMatrix, .vanished, .bus, .noProxy, .proxyWithoutAccelerometer: true
    }
  }

  /// A one-line message for the terminal.
  package var description: String {
    switch self {
    case .noAccelerometer(let root):
      "no accelerometer under \(root)/bus/iio/devices: choose --orientation 0, 90, 180 or 270"
    case .axes(let device, let missing):
      "accelerometer \(device) has no \(missing.joined(separator: " and ")) axis: three are needed"
    case .read(let path, let errorNumber): "\(path): \(SystemFailure.text(errorNumber))"
    case .notANumber(let path, let text): "\(path) holds '\(text)', which is not a finite number"
    case .mountMatrix(let path, let text):
      "\(path) holds '\(text)', which is not a mount matrix such as 'x, x, x; y, y, y; z, z, z'"
    case .zeros(let seconds): "the accelerometer measured nothing for \(seconds) s: the last orientation stays"
    case .implausible(let magnitude, let seconds):
      "the accelerometer measured \(Int(min(magnitude, 1e9).rounded())) m/s² for \(seconds) s instead of 10, gravity: "
        + "check its scale"
    case .stuck(let seconds):
      "the accelerometer's readings have not changed at all for \(seconds) s: the last orientation stays"
    case .vanished(let device): "accelerometer \(device) is gone: the last orientation stays"
    case .bus(let what, let reason): "D-Bus, \(what): \(reason)"
    case .noProxy: "iio-sensor-proxy does not run"
    case .proxyWithoutAccelerometer: "iio-sensor-proxy has no accelerometer"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind {
    switch self {
    case .noAccelerometer, .axes, .noProxy, .proxyWithoutAccelerometer, .vanished: .unavailable
    case .read, .bus: .inputOutput
    case .notANumber, .mountMatrix, .zeros, .implausible, .stuck: .data
    }
  }
}
