import Glibc
import Media
import OrientationSensing
import Synchronization
import Threading

/// Follows how the device is held, on a thread of its own: a sensor may take its time.
struct PostureWatch: ~Copyable {
  // In this order: the thread is waited for before what it uses is gone.
  private let thread: NamedThread
  private let shared: Shared

  /// What the thread and its owner share.
  private final class Shared: Sendable {
    let interrupt: Interrupt
    let notes = Mutex<[String]>([])

    init() throws(SystemFailure) {
      interrupt = try Interrupt()
    }

    /// The most lines that wait for somebody to show them.
    static let noteLimit = 16

    func note(_ text: String) {
      notes.withLock { if $0.count < Self.noteLimit { $0.append(text) } }
    }
  }

  /// How long a sensor that is gone is left alone before it is looked for again.
  private static let retryInterval = MediaTime(seconds: 10)

  /// Begins to follow the sensor under `sysfs`, with udev's database in `udev`; nil for the usual one.
  ///
  /// - Parameter turn: called on the thread with each new turn that sets the picture upright.
  /// - Throws: ``SystemFailure``.
  init(
    facing: DevicePosture.Facing, sysfs: String, udev: String?, turn: @escaping @Sendable (Rotation) -> Void
  ) throws(SystemFailure) {
    let shared = try Shared()
    let thread = try NamedThread("nj-posture") {
      var lastComplaint: SensorError?
      while !shared.interrupt.hasFired() {
        do throws(SensorError) {
          let sensor = try OrientationSensor.open(root: sysfs, udev: udev)
          shared.note("orientation follows the \(sensor.name)")
          lastComplaint = nil
          while !shared.interrupt.hasFired() {
            do throws(SensorError) {
              guard let posture = try sensor.next(interrupt: shared.interrupt) else { break }
              turn(posture.rotation(facing: facing))
            } catch {
              guard !error.isFinal else { throw error }
              shared.note("\(error)")
            }
          }
        } catch {
          // Once: a sensor that stays away is no news every ten seconds.
          if lastComplaint != error { shared.note("\(error)") }
          lastComplaint = error
          _ = shared.interrupt.wait(until: .now() + Self.retryInterval)
        }
      }
    }
    self.thread = thread
    self.shared = shared
  }

  /// What there is to tell since the last call, oldest first.
  borrowing func takeNotes() -> [String] {
    shared.notes.withLock { notes in
      defer { notes.removeAll() }
      return notes
    }
  }

  deinit {
    shared.interrupt.fire()
  }
}
