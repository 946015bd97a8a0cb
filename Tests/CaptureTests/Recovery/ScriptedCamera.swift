import Capture
import Glibc
import Media
import Platform
import Synchronization

/// A camera that does what a test tells it, in memory that the test can look at.
final class ScriptedCamera: VideoSource, @unchecked Sendable {
  // Sendable: what is mutable is locked.

  struct Script {
    /// The error that `next` throws, until it is nil again.
    var failure: (any Error)?
    /// The error that `start` throws.
    var startFailure: (any Error)?
    /// The cause for which each picture is dropped; nil delivers it.
    var drop: DropCause?
    /// `true` if pictures come.
    var delivers = true
    /// `true` if each picture differs from the one before.
    var moves = true
  }

  let format: SourceFormat
  let name: String
  let isLive = true
  let script = Mutex(Script())
  let pool: FramePool
  private let asked = Mutex(Orientation.upright)
  private let number = Mutex(0)
  let stops = Atomic<Int>(0)

  init(_ name: String, size: PictureSize = PictureSize(width: 96, height: 64), rate: FrameRate = .thirty) throws {
    self.name = name
    pool = try FramePool(size: size)
    format = SourceFormat(
      size: size, frameRate: rate, pixelFormat: .nv12, color: .bt709, conversion: "no copy", turnsApart: true)
  }

  var orientation: Orientation { asked.withLock { $0 } }
  var turningFailure: (any Failure)? { nil }
  func orient(_ orientation: Orientation) { asked.withLock { $0 = orientation } }
  func prepareTurning() {}
  func start() throws { if let error = script.withLock({ $0.startFailure }) { throw error } }
  func stop() { stops.add(1, ordering: .relaxed) }

  func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    let script = script.withLock { $0 }
    if let failure = script.failure { throw failure }
    guard interrupt.wait(until: .now() + Duration.milliseconds(5)), script.delivers else { return .idle }
    if let cause = script.drop { return .dropped(cause, count: 1) }
    let now = Instant.now()
    guard let frame = pool.checkout(color: .bt709, timestamp: now, captured: now) else {
      return .dropped(.poolExhausted, count: 1)
    }
    let count = number.withLock { number in
      if script.moves { number += 1 }
      return number
    }
    memset(frame.planes.luma, CInt(count % 200), frame.planes.lumaStride * frame.planes.size.height)
    return .frame(frame)
  }
}

/// Finds what a test lays out for it.
final class ScriptedFinder: CameraFinding {
  /// The finding of the next look.
  enum Finding {
    case nothing
    case camera(ScriptedCamera)
    case failure(any Failure)
  }

  let finding = Mutex(Finding.nothing)
  let losses = Atomic<Int>(0)
  let looks = Atomic<Int>(0)

  func noteLoss() { losses.add(1, ordering: .relaxed) }

  func find() throws -> ScriptedCamera? {
    looks.add(1, ordering: .relaxed)
    switch finding.withLock({ $0 }) {
    case .nothing: return nil
    case .camera(let camera): return camera
    case .failure(let error): throw error
    }
  }

  func warnings(of camera: ScriptedCamera) -> [String] { ["odd: \(camera.name)"] }
}
