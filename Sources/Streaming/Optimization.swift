/// What the program does to be fast, each of which can be left out to see what it brings: `nightjar stream --without`.
///
/// What each one brings is measured by `make bench-ab`; docs/performance.md has the table, and says why ``mmsg`` stays, which
/// brings nothing there.
public enum Optimization: String, CaseIterable, Hashable, Sendable {
  /// Frames lie in memory that is there from the start. Without it each frame's is mapped when it comes and unmapped
  /// after it.
  case pool
  /// A camera's buffers go to the encoder as they are, and packets point into the coded picture. Without it both are
  /// copied.
  case zerocopy
  /// With `ultra-low-latency` each slice leaves as soon as it is coded. Without it all leave with the last one.
  case slices
  /// Capture and send take real-time priority where they may. Without it they wait their turn.
  case rtprio
  /// The kernel wakes the threads of the frame path to the nanosecond. Without it within 50 us (`PR_SET_TIMERSLACK`).
  case timerslack
  /// The kernel cuts messages of up to 64 packets apart (`UDP_SEGMENT`). Without it each packet is a message.
  case gso
  /// Many messages go to the kernel in one call (`sendmmsg`). Without it, and without ``gso``, each packet is a call.
  case mmsg
  /// Destinations of one kind share packets that were made once. Without it they are made for each; viewers by RTSP share
  /// theirs all the same.
  case sharing
  /// The encoder of the other orientation, and the one behind the hardware, stand by warm. Without it each is made when
  /// it is needed.
  case standby
}
