import CLinux
import Glibc
package import Media
package import Platform
import Synchronization

/// Delivers placeholders at the stream's frame rate, from the camera's last picture to its next one. Only the source's
/// thread uses it, except for `failure`.
package final class PlaceholderBridge: @unchecked Sendable {
  // Sendable: `failureSlot` is locked; everything else belongs to the source's one thread.

  private let format: SourceFormat
  private let wallClock: @Sendable () -> Int64
  private let level: PlaceholderPicture
  private var sideways: PlaceholderPicture?
  private let failureSlot = Mutex<FramePoolError?>(nil)
  private var schedule: FrameSchedule
  private var tick: Int64 = 0
  /// The contents of the text that was shown last.
  private var shown: Moment?

  private struct Moment: Equatable {
    var second: Int64
    var state: CameraState
    var since: Instant
    var obstacle: String
    var isSideways: Bool
  }

  package init(format: SourceFormat, wallClock: @escaping @Sendable () -> Int64) throws(FramePoolError) {
    self.format = format
    self.wallClock = wallClock
    level = try PlaceholderPicture(size: format.size)
    schedule = FrameSchedule(start: .zero, rate: format.frameRate)
  }

  /// The reason why there are no rotated placeholders; nil if they exist or none were requested. Any thread may read
  /// it.
  var failure: (any Failure)? { failureSlot.withLock { $0 } }

  /// Allocates the placeholders for quarter rotations.
  ///
  /// - Throws: `FramePoolError`.
  func prepareTurning() throws(FramePoolError) {
    guard sideways == nil else { return }
    sideways = try PlaceholderPicture(size: Orientation(.quarter).size(of: format.size))
  }

  /// Starts the schedule. The first placeholder is due one frame interval after `time`, the time of the last picture,
  /// but never in the past.
  package func begin(after time: Instant) {
    schedule = FrameSchedule(start: max(time + format.frameRate.interval, .now()), rate: format.frameRate)
    tick = 0
  }

  /// Waits until the next placeholder is due. Returns `false` if `descriptor` becomes readable or `interrupt` fires
  /// first.
  package func wait(for descriptor: CInt, interrupt: borrowing Interrupt) -> Bool {
    let due = schedule.time(ofTick: tick)
    var descriptors = (
      pollfd(fd: interrupt.fileDescriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    )
    return withUnsafeMutablePointer(to: &descriptors) {
      $0.withMemoryRebound(to: pollfd.self, capacity: 2) { descriptors in
        while true {
          let rest = max(0, (due - .now()).nanoseconds)
          let result = nightjar_poll(descriptors, 2, rest)
          if result > 0 { return false }
          if result == 0, .now() >= due { return true }
        }
      }
    }
  }

  /// Returns the due placeholder, which shows `condition`; nil if memory for `orientation` is short.
  package func frame(_ condition: CameraCondition, orientation: Orientation, obstacle: String) -> Frame? {
    // Skips the ticks that were missed: a skipped placeholder loses no picture.
    tick = max(tick, schedule.lastTick(at: .now()))
    let due = schedule.time(ofTick: tick)
    tick += 1
    guard let picture = picture(orientation) else { return nil }
    let now = wallClock()
    let moment = Moment(
      second: now / 1_000_000_000, state: condition.state, since: condition.since, obstacle: obstacle,
      isSideways: orientation.swapsSides)
    if moment != shown, picture.show(text(moment)) { shown = moment }
    return picture.frame(color: format.color, timestamp: due)
  }

  /// Returns the wall clock's reading at `time`, computed from its present reading.
  package func wallTime(of time: Instant) -> WallTime {
    WallTime(nanoseconds: wallClock() &- (Instant.now() - time).nanoseconds)
  }

  private func picture(_ orientation: Orientation) -> PlaceholderPicture? {
    guard orientation.swapsSides else {
      failureSlot.withLock { $0 = nil }
      return level
    }
    do throws(FramePoolError) {
      try prepareTurning()
      failureSlot.withLock { $0 = nil }
    } catch {
      failureSlot.withLock { $0 = error }
    }
    return sideways
  }

  private func text(_ moment: Moment) -> PlaceholderPicture.Text {
    let now = WallTime(nanoseconds: wallClock())
    let since = wallTime(of: moment.since)
    let headline =
      switch moment.state {
      case .waiting, .live, .frozen: "waiting for camera"
      case .disconnected: "camera disconnected"
      case .stalled: "camera stalled"
      case .failed: "camera failed"
      }
    let day = since.date == now.date ? "" : "\(since.date) "
    return PlaceholderPicture.Text(
      headline: headline, since: "since \(day)\(since.minute)", obstacle: moment.obstacle, clock: now.clock)
  }
}

/// Local time to the second, by the wall clock. Users and programs may set that clock at any time.
package struct WallTime: Equatable {
  /// `2026-11-21`.
  package let date: String
  /// `12:03:04`.
  let clock: String
  /// `12:03`.
  var minute: String { String(clock.prefix(5)) }

  /// Creates the local time of `nanoseconds` on `CLOCK_REALTIME`.
  init(nanoseconds: Int64) {
    var time = time_t(nanoseconds / 1_000_000_000)
    var parts = tm()
    localtime_r(&time, &parts)
    func two(_ value: CInt) -> String { value < 10 ? "0\(value)" : "\(value)" }
    date = "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
    clock = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
  }

  /// Returns the present time of `CLOCK_REALTIME`, in nanoseconds.
  @Sendable package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
