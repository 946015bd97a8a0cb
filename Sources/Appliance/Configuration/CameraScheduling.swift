package import Media
package import Platform
package import Streaming

/// The settings for priority and processors of the threads that handle frames, and for their memory.
package struct CameraScheduling: Hashable, Sendable {
  var realTime = RealTimePriority.auto
  package var processors: ProcessorSet?
  var withoutEach: [Set<Optimization>] = []

  /// The optimizations that are switched off.
  package var without: Set<Optimization> { withoutEach.reduce(into: []) { $0.formUnion($1) } }

  /// The use of real-time priority: none where it is switched off for comparison.
  package var priority: RealTimePriority { without.contains(.rtprio) ? .off : realTime }

  /// `true` if the kernel wakes the threads of the frame path with a precision of 1 ns.
  package var isPunctual: Bool { !without.contains(.timerslack) }

  /// The way in which packets are made and leave.
  package var sending: PacketSending {
    var sending = PacketSending()
    if without.contains(.gso) { sending.segmentsLimit = 1 }
    if without.contains(.mmsg) { sending.messagesAtATime = 1 }
    sending.copiesPayloads = without.contains(.zerocopy)
    sending.sharesPackets = !without.contains(.sharing)
    return sending
  }

  /// The memory options of frames.
  package var frameMemory: FrameMemory {
    FrameMemory(isKept: !without.contains(.pool), isLent: !without.contains(.zerocopy))
  }

  /// Runs `body` on the camera's processors. Threads that `body` starts stay on these processors.
  package func confine<R>(_ body: () throws -> R) throws -> R {
    guard let processors else { return try body() }
    return try processors.confining(body)
  }

  /// Reports settings that contradict each other.
  func check(_ faults: inout SettingFaults) {
    if without.contains(.rtprio), realTime == .on {
      faults.add("\(.without) rtprio and \(.realTime) on exclude each other")
    }
  }
}
