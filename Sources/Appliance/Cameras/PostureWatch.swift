import Glibc
import Host
import Media
import Platform

/// Follows the posture of the device, on a thread of its own: a sensor may take its time.
struct PostureWatch: ~Copyable {
  // In this order: the thread is waited for before the objects that it uses are gone.
  private let thread: NamedThread
  private let sensing: Sensing
  /// The messages for the main thread.
  let notes = Notes()

  /// The interrupt that ends the thread.
  private final class Sensing: Sendable {
    let interrupt: Interrupt

    init() throws(SystemFailure) {
      interrupt = try Interrupt()
    }
  }

  /// The interval between searches for a sensor that is gone.
  private static let retryInterval = Duration(seconds: 10)

  /// Begins to follow the sensor under `sysfs`, with udev's database in `udev`; `nil` for the default one.
  ///
  /// - Parameter turn: a function that the thread calls with each new rotation that sets the picture upright.
  /// - Throws: ``SystemFailure``.
  init(
    facing: DevicePosture.Facing, sysfs: String, udev: String?, turn: @escaping @Sendable (Rotation) -> Void
  ) throws(SystemFailure) {
    let sensing = try Sensing()
    let notes = notes
    let thread = try NamedThread("nj-posture") {
      var lastComplaint: SensorError?
      while !sensing.interrupt.hasFired() {
        do throws(SensorError) {
          let sensor = try OrientationSensor.open(root: sysfs, udev: udev)
          notes.add("orientation follows the \(sensor.name)", event: "orientation")
          lastComplaint = nil
          while !sensing.interrupt.hasFired() {
            do throws(SensorError) {
              guard let posture = try sensor.next(interrupt: sensing.interrupt) else { break }
              turn(posture.rotation(facing: facing))
            } catch {
              guard !error.isFinal else { throw error }
              notes.add("\(error)", event: "orientation")
            }
          }
        } catch {
          // Once: a sensor that stays away is no news every ten seconds.
          if lastComplaint != error { notes.add("\(error)", event: "orientation") }
          lastComplaint = error
          _ = sensing.interrupt.wait(until: .now() + Self.retryInterval)
        }
      }
    }
    self.thread = thread
    self.sensing = sensing
  }

  deinit {
    sensing.interrupt.fire()
  }
}
