import Foundation

/// The processor time of this thread so far. What other programs take of a busy machine is none of it.
func threadTime() -> Duration {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Duration.seconds(time.tv_sec) + Duration.nanoseconds(time.tv_nsec)
}
