import CLinux
import Glibc
import Platform

/// The descriptors and deadlines that a session's thread waits for.
struct SessionWait {
  private var polled: [pollfd] = []

  /// Adds a descriptor; its place is returned.
  mutating func add(_ descriptor: CInt, _ events: CInt = CInt(POLLIN)) -> Int {
    polled.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
    return polled.count - 1
  }

  /// Waits until a descriptor is ready, or until `deadline`.
  mutating func wait(until deadline: Instant) {
    _ = nightjar_poll(&polled, UInt32(polled.count), max(0, (deadline - .now()).nanoseconds))
  }

  /// Returns `true` if the descriptor at this place is ready.
  func isReady(_ place: Int) -> Bool { polled[place].revents != 0 }
}

/// The wall clock, in nanoseconds of Unix time.
func wallClock() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
