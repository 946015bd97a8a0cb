import Glibc
package import Platform
import Synchronization

/// Frames of samples on their way from the sound's thread to the one that encodes them for listeners. If there is no
/// room, the oldest frame is dropped: what a person hears late is worth less than a gap.
package final class SampleRing: @unchecked Sendable {
  // Sendable: everything is under the monitor but the atomic. The monitor's lock passes on priority, and is held for a
  // copy at most.

  /// The most frames that wait: half a second, as a host that is busy may leave the thread that encodes.
  package static let capacity = 25

  /// A request for a frame, and its result.
  package enum Taken {
    /// A frame was copied, for the listeners of that generation.
    case frame(generation: Int)
    /// No frame came in time.
    case nothing
  }

  /// The samples of a frame, over all channels.
  let frameSamples: Int
  private let monitor = Monitor()
  private let wanted = Atomic(false)
  private var memory: UnsafeMutablePointer<Int16>?
  private var (first, count) = (0, 0)
  private var generation = 0
  private var dropped = 0

  /// Creates a ring without memory that takes nothing.
  package init(frameSamples: Int) { self.frameSamples = frameSamples }

  deinit { memory?.deallocate() }

  /// `true` if frames are wanted. Any thread may read it.
  var isWanted: Bool { wanted.load(ordering: .relaxed) }

  /// The frames that were dropped for newer ones.
  package var droppedFrames: Int { monitor.locked { dropped } }

  /// Drops the frames that wait, and takes new ones.
  ///
  /// - Parameter generation: the generation of listeners that the new frames are for.
  package func open(generation: Int) {
    let fresh = UnsafeMutablePointer<Int16>.allocate(capacity: Self.capacity * frameSamples)
    // Touched, so that the sound's thread pays for no page fault.
    fresh.initialize(repeating: 0, count: Self.capacity * frameSamples)
    let spare: UnsafeMutablePointer<Int16>? = monitor.locked {
      (first, count) = (0, 0)
      self.generation = generation
      wanted.store(true, ordering: .relaxed)
      guard memory == nil else { return fresh }
      memory = fresh
      return nil
    }
    spare?.deallocate()
  }

  /// Takes no more frames; keeps the memory.
  package func pause() { wanted.store(false, ordering: .relaxed) }

  /// Takes no more frames, and ends the wait for one.
  func close() {
    let spare: UnsafeMutablePointer<Int16>? = monitor.locked {
      wanted.store(false, ordering: .relaxed)
      (first, count) = (0, 0)
      defer { memory = nil }
      monitor.signal()
      return memory
    }
    spare?.deallocate()
  }

  /// Copies a frame of ``frameSamples`` if frames are wanted. For one thread.
  package func put(_ frame: UnsafeBufferPointer<Int16>) {
    guard isWanted, let source = frame.baseAddress, frame.count == frameSamples else { return }
    monitor.locked {
      guard let memory else { return }
      if count == Self.capacity {
        first = (first + 1) % Self.capacity
        count -= 1
        dropped += 1
      }
      memcpy(memory + (first + count) % Self.capacity * frameSamples, source, frameSamples * MemoryLayout<Int16>.size)
      count += 1
      monitor.signal()
    }
  }

  /// Copies the oldest frame into `frame`; waits for one until `deadline`. For one thread.
  package func take(_ frame: UnsafeMutableBufferPointer<Int16>, until deadline: Instant) -> Taken {
    guard let target = frame.baseAddress, frame.count == frameSamples else { return .nothing }
    return monitor.locked {
      if count == 0 { _ = monitor.wait(until: deadline) }
      guard count > 0, let memory else { return .nothing }
      memcpy(target, memory + first * frameSamples, frameSamples * MemoryLayout<Int16>.size)
      first = (first + 1) % Self.capacity
      count -= 1
      return .frame(generation: generation)
    }
  }
}
