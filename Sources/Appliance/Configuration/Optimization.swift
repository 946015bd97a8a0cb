/// A measure that makes the program fast. Each one can be left out, to see what it brings: `nightjar stream --without`.
///
/// `make bench-ab` measures the effect of each one; docs/performance.md has the results, and the reason to keep ``mmsg``,
/// whose effect is too small to measure there.
package enum Optimization: String, CaseIterable, Hashable, Sendable {
  /// Frames lie in memory that exists from the start. Without it each frame's memory is mapped when the frame comes and
  /// unmapped after it.
  case pool
  /// A camera's buffers go to the encoder without a copy, and packets point into the coded picture. Without it both are
  /// copied.
  case zerocopy
  /// With `ultra-low-latency` each slice leaves as soon as it is coded. Without it all leave with the last one.
  case slices
  /// Capture and send take real-time priority where they are allowed to. Without it they have ordinary priority.
  case rtprio
  /// The kernel wakes the threads of the frame path with a precision of 1 ns (`PR_SET_TIMERSLACK`). Without it the
  /// precision is 50 us.
  case timerslack
  /// The kernel splits messages of up to 64 packets (`UDP_SEGMENT`). Without it each packet is a message.
  case gso
  /// Many messages go to the kernel in one call (`sendmmsg`). Without it, and without ``gso``, each packet is a call.
  case mmsg
  /// Destinations of one kind share packets that were made once. Without it packets are made for each destination.
  /// Viewers by RTSP share theirs in any case.
  case sharing
  /// The standby encoders, one for the other orientation and one behind the hardware, are kept prepared. Without it
  /// each is made when it is needed.
  case standby
}
