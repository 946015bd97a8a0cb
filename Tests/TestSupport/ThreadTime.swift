import Foundation

/// The processor time of this thread so far, without the time that other programs of a busy machine take.
package func threadTime() -> Duration {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Duration.seconds(time.tv_sec) + Duration.nanoseconds(time.tv_nsec)
}
