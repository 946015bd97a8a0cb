import Media
import Platform
import Synchronization

/// The failures of the stream that the camera repairs, and those that end it.
extension V4L2Camera {
  /// The error for a missing signal at the input; nil if there is a signal, or if the device needs none.
  public var missingSignal: CaptureError? {
    device.lacksSignal ? .sourceChanged(path: path, agreed: driverFormat.size, current: nil) : nil
  }

  func idle() throws(CaptureError) -> CaptureEvent {
    let limit = hasDelivered ? stallLimit : startLimit
    if Instant.now() - lastSign > limit { throw .stalled(path: path, seconds: Int(limit.seconds)) }
    return .idle
  }

  /// Reads the driver's events.
  ///
  /// - Throws: ``CaptureError/sourceChanged(path:agreed:current:)`` if the pictures no longer have the negotiated
  ///   format.
  func checkSource() throws(CaptureError) {
    guard device.takeSourceChange(), let change = device.sourceChange(from: driverFormat) else { return }
    throw .sourceChanged(path: path, agreed: driverFormat.size, current: change.current)
  }

  /// Sets rotation, format and rate again, because other programs may have used the device.
  func agreeAgain() throws(CaptureError) {
    if let driverRotation {
      warningList.withLock { Self.noting(&$0, else: (), driverRotation.apply) }
      converter.base = driverRotation.applied.inverse.then(mounting)
    }
    let format = try device.setFormat(choice, for: request)
    guard format == driverFormat else {
      throw .sourceChanged(path: path, agreed: driverFormat.size, current: format.size)
    }
    _ = try device.setRate(choice, for: request)
  }

  /// Marks the stream as broken: the next call restarts it.
  func lose(_ errorNumber: CInt) throws(CaptureError) -> CaptureEvent {
    isBroken = true
    restarts += 1
    codedNumber &+= 1
    if restarts > Self.restartLimit {
      throw .broken(path: path, attempts: restarts, errorNumber: errorNumber)
    }
    events.add(.warning("\(path): the stream broke (\(SystemFailure.text(errorNumber))); nightjar restarts it"))
    return .dropped(.driverError, count: 1)
  }

  /// Restarts the stream after a pause that grows with each attempt.
  func restart(interrupt: borrowing Interrupt) throws(CaptureError) -> CaptureEvent {
    let pause = Duration(nanoseconds: 10_000_000 << Int64(restarts))
    guard interrupt.wait(until: .now() + pause) else { return .idle }
    queue.pause()
    counter.restart()
    lastSign = .now()
    hasDelivered = false
    do throws(CaptureError) {
      try queue.start(renew: agreeAgain)
      isBroken = false
      return .idle
    } catch {
      if case .refused(_, _, let errorNumber) = error { return try lose(errorNumber) }
      throw error
    }
  }
}
