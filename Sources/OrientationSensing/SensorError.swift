public import Media

/// Why a sensor does not tell the orientation. The stream goes on in the last good one.
public enum SensorError: Failure, Hashable {
  /// There is no accelerometer, or none with three axes.
  case noAccelerometer(root: String)
  /// Some axes are missing.
  case axes(device: String, missing: [String])
  /// The system does not let a value be read.
  case read(path: String, errorNumber: CInt)
  /// A value is no number.
  case notANumber(path: String, text: String)
  /// The mount matrix is none: three rows of three numbers, which do not flatten space.
  case mountMatrix(path: String, text: String)
  /// It measured nothing at all for so long.
  case zeros(seconds: Double)
  /// It measured what cannot be gravity for so long, in m/s².
  case implausible(magnitude: Double, seconds: Double)
  /// It measured the same to the last bit for so long; a real one trembles.
  case stuck(seconds: Double)
  /// The device is gone.
  case vanished(device: String)
  /// The bus is not there or refused; in its own words.
  case bus(String, reason: String)
  /// `iio-sensor-proxy` does not run, or has ended.
  case noProxy
  /// `iio-sensor-proxy` runs but has no accelerometer.
  case proxyWithoutAccelerometer

  /// Whether asking the same sensor again is of no use.
  public var isFinal: Bool {
    switch self {
    case .read, .notANumber, .zeros, .implausible, .stuck: false
    case .noAccelerometer, .axes, .mountMatrix, .vanished, .bus, .noProxy, .proxyWithoutAccelerometer: true
    }
  }

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .noAccelerometer(let root):
      "no accelerometer under \(root)/bus/iio/devices: choose --orientation 0, 90, 180 or 270"
    case .axes(let device, let missing):
      "accelerometer \(device) has no \(missing.joined(separator: " and ")) axis: three are needed"
    case .read(let path, let errorNumber): "\(path): \(SystemFailure.text(errorNumber))"
    case .notANumber(let path, let text): "\(path) holds '\(text)', which is no finite number"
    case .mountMatrix(let path, let text):
      "\(path) holds '\(text)', which is no mount matrix: 'x, x, x; y, y, y; z, z, z' is expected"
    case .zeros(let seconds): "the accelerometer measured nothing for \(seconds) s: the last orientation stays"
    case .implausible(let magnitude, let seconds):
      "the accelerometer measured \(Int(min(magnitude, 1e9).rounded())) m/s² for \(seconds) s instead of 10, gravity: "
        + "is its scale right?"
    case .stuck(let seconds):
      "the accelerometer's readings have not changed at all for \(seconds) s: the last orientation stays"
    case .vanished(let device): "accelerometer \(device) is gone: the last orientation stays"
    case .bus(let what, let reason): "D-Bus, \(what): \(reason)"
    case .noProxy: "iio-sensor-proxy does not run"
    case .proxyWithoutAccelerometer: "iio-sensor-proxy has no accelerometer"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .noAccelerometer, .axes, .noProxy, .proxyWithoutAccelerometer, .vanished: .unavailable
    case .read, .bus: .inputOutput
    case .notANumber, .mountMatrix, .zeros, .implausible, .stuck: .data
    }
  }
}
