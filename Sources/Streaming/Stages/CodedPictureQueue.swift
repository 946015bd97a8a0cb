import Glibc
package import Media
package import Platform

/// The bytes of one access unit in the program's own memory, on their way from the encoder to the network. The
/// encoder's own bytes are lost with its next picture. The access unit may come in parts: the first ones are sent while
/// the encoder makes the next.
package final class CodedPicture: @unchecked Sendable {
  // Sendable: one stage holds it at a time, as the queue hands it on. While it comes in parts, the encode stage writes
  // behind what the send stage reads. Neither touches the other's bytes, NAL units or figures, and the queue's monitor
  // stands between writing a part and reading it.
  private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
  fileprivate var nalUnitCount = 0
  private var byteCount = 0
  private var isKeyFrame = false
  private(set) var timestamp = Instant.zero
  private var captured = Instant.zero
  /// The time at which the encoder was done with the picture; zero or earlier until its last part was taken.
  var encoded: Instant { taken.encoded }
  // `exclusivity(unchecked)`: nothing else happens while it is counted.
  /// The number of objects that still need the picture; the queue counts them, on the send thread.
  @exclusivity(unchecked) package fileprivate(set) var holders = 0
  /// The committed NAL units, and the queue's other facts about the picture; under the queue's monitor.
  fileprivate var committed = Progress()
  /// The progress that the send thread has taken; its own.
  fileprivate var taken = Progress()
  /// The first NAL unit of the part that the send thread took last.
  private var partStart = 0

  fileprivate struct Progress {
    var nalUnits = 0
    /// The time at which the encoder was done with these NAL units.
    var encoded = Instant.zero
    /// `true` if nothing follows.
    var isEnded = false
    /// `true` if the encoder gave the picture up.
    var isBroken = false
  }

  /// Maps memory for `capacity` bytes. No page is touched before a picture needs it.
  package init(capacity: Int) throws(FramePoolError) {
    let mapped = mmap(
      nil, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | CInt(MAP_NORESERVE), -1, 0)
    guard let mapped, mapped != MAP_FAILED else { throw .memory(bytes: capacity) }
    memory = mapped
    self.capacity = capacity
    nalUnits = .allocate(capacity: AccessUnit.nalUnitLimit)
  }

  deinit {
    munmap(memory, capacity)
    nalUnits.deallocate()
  }

  /// Copies `unit` behind the parts before it. Returns `false` if it does not fit.
  package func store(_ unit: borrowing AccessUnit) -> Bool {
    if unit.isFirstPart { (nalUnitCount, byteCount) = (0, 0) }
    guard unit.nalUnits.count <= AccessUnit.nalUnitLimit - nalUnitCount, unit.payloadBytes <= capacity - byteCount
    else {
      return false
    }
    var end = memory + byteCount
    for source in unit.nalUnits {
      guard let bytes = source.bytes.baseAddress else { continue }
      end.copyMemory(from: bytes, byteCount: source.bytes.count)
      guard let copy = NALUnit(UnsafeRawBufferPointer(start: end, count: source.bytes.count)) else { continue }
      nalUnits.initializeElement(at: nalUnitCount, to: copy)
      nalUnitCount += 1
      end += source.bytes.count
    }
    byteCount = end - memory
    // The send stage may read these values while the second part is written.
    guard unit.isFirstPart else { return true }
    isKeyFrame = unit.isKeyFrame
    timestamp = unit.timestamp
    captured = unit.captured
    return true
  }

  /// The part that was taken last: the whole access unit where it came as one. Valid until the picture goes back to the
  /// queue.
  package var part: AccessUnit {
    AccessUnit(
      nalUnits: UnsafeBufferPointer(rebasing: nalUnits[partStart..<taken.nalUnits]), isKeyFrame: isKeyFrame,
      timestamp: timestamp, captured: captured, isFirstPart: partStart == 0, isLastPart: taken.isEnded)
  }

  /// `true` if the encoder failed in the middle of the picture: nothing follows, and the rest is not worth sending.
  package var isBroken: Bool { taken.isBroken }

  /// Takes the NAL units that were committed since the last call.
  fileprivate func takePart() {
    partStart = taken.nalUnits
    taken = committed
  }

  /// The access unit, to be read once its last part was taken. Valid until the picture goes back to the queue.
  package var accessUnit: AccessUnit {
    AccessUnit(
      nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<nalUnitCount]), isKeyFrame: isKeyFrame,
      timestamp: timestamp, captured: captured)
  }
}

/// A fixed number of coded pictures between the encoder and the network, in order. The queue drops nothing, because the
/// pictures after a missing one cannot be decoded. An encoder that finds no room waits, and meanwhile the mailbox in
/// front of it keeps only the newest frame. The last picture may be open: then parts of it follow.
///
/// The queue owns its pictures and counts their holders. A picture is free, or with the writer, or filled, or taken. It
/// is taken from ``take()`` until its last holder releases it. Only the reader's thread takes and releases, so a taken
/// picture always has a holder.
package final class CodedPictureQueue: @unchecked Sendable {
  // Sendable: the lists are touched only under the monitor.
  private let monitor = Monitor()
  private var free: [CodedPicture] = []
  private var filled: [CodedPicture] = []
  /// The pictures that have holders, in the order in which they were taken. The reader's thread alone uses it.
  private var taken: [CodedPicture] = []
  /// The number of pictures that are being written or wait to be taken.
  private var queued = 0
  private var committed = 0
  private var isClosed = false
  /// Fires when a picture has come, or the queue was closed.
  package let arrival: Interrupt
  private let first: CodedPictureQueue?

  /// The most pictures that wait for the network; the reference design's figure.
  package static let depth = 3

  /// Creates room for pictures of at most `capacity` bytes: ``depth`` that wait, and `held` that were taken and are
  /// still needed. Memory is used only for the most that the queue ever held at a time.
  ///
  /// - Parameter first: the queue whose ``arrival`` fires for this one's pictures as well, because one thread reads both.
  package init(capacity: Int, held: Int = 1, readWith first: CodedPictureQueue? = nil) throws {
    self.first = first
    arrival = try Interrupt()
    let count = Self.depth + max(1, held)
    free.reserveCapacity(count)
    filled.reserveCapacity(Self.depth)
    taken.reserveCapacity(count)
    for _ in 0..<count { free.append(try CodedPicture(capacity: capacity)) }
  }

  /// Waits for an empty picture to write into; nil once the queue is closed.
  package func beginWrite() -> CodedPicture? {
    monitor.locked {
      while queued >= Self.depth || free.isEmpty, !isClosed { monitor.wait() }
      guard !isClosed else { return nil }
      queued += 1
      let picture = free.popLast()
      picture?.committed = CodedPicture.Progress()
      picture?.taken = CodedPicture.Progress()
      return picture
    }
  }

  /// Returns an empty picture to write into, without waiting; nil where there is none, or the queue is closed.
  func beginWriteAtOnce() -> CodedPicture? {
    monitor.locked {
      guard queued < Self.depth, !isClosed, let picture = free.popLast() else { return nil }
      queued += 1
      picture.committed = CodedPicture.Progress()
      picture.taken = CodedPicture.Progress()
      return picture
    }
  }

  /// Hands on a written picture, or the part of it that was written since the last call.
  ///
  /// - Parameters:
  ///   - encoded: the time at which the encoder was done with it, which may be zero for a part.
  ///   - isEnded: `false` where more parts follow.
  package func commit(_ picture: CodedPicture, encoded: Instant, isEnded: Bool = true) {
    let written = picture.nalUnitCount
    monitor.locked {
      // Otherwise the picture is in the queue, and the send stage has not got beyond it.
      if filled.last !== picture { filled.append(picture) }
      picture.committed.nalUnits = written
      picture.committed.encoded = encoded
      picture.committed.isEnded = isEnded
      if isEnded { committed += 1 }
    }
    announce()
  }

  /// Ends a picture of which parts were handed on and no more follow.
  package func breakOff(_ picture: CodedPicture) {
    monitor.locked {
      picture.committed.isEnded = true
      picture.committed.isBroken = true
      committed += 1
    }
    announce()
  }

  /// The number of pictures that were handed on so far.
  var committedCount: Int { monitor.locked { committed } }

  /// Takes back a picture that was not written after all.
  func abandon(_ picture: CodedPicture) {
    monitor.locked {
      queued -= 1
      free.append(picture)
      monitor.signal()
    }
  }

  /// The result of ``take()``.
  package enum Arrival {
    /// A picture with a new ``CodedPicture/part``.
    case picture(CodedPicture)
    case none
    case closed
  }

  /// Takes the next picture, with one holder, or the new part of the picture that was taken in part; without waiting.
  /// Pictures that were committed before the queue was closed still come.
  package func take() -> Arrival {
    monitor.locked {
      guard let picture = filled.first else { return isClosed ? .closed : .none }
      guard picture.committed.isEnded || picture.committed.nalUnits > picture.taken.nalUnits else { return .none }
      if picture.holders == 0 {
        picture.holders = 1
        taken.append(picture)
      }
      picture.takePart()
      guard picture.taken.isEnded else { return .picture(picture) }
      filled.removeFirst()
      queued -= 1
      monitor.signal()
      return .picture(picture)
    }
  }

  /// Notes another holder of a taken picture, which needs it until ``release(_:)``.
  package func addHolder(of picture: CodedPicture) { picture.holders += 1 }

  /// Returns the taken picture that was taken first, where there are more than `limit`.
  package func oldestTaken(beyond limit: Int) -> CodedPicture? { taken.count > limit ? taken.first : nil }

  /// Releases a taken picture for one holder. The last holder gives it back.
  package func release(_ picture: CodedPicture) {
    precondition(picture.holders > 0, "a picture is released once for each holder")
    picture.holders -= 1
    guard picture.holders == 0 else { return }
    if let index = taken.firstIndex(where: { $0 === picture }) { taken.remove(at: index) }
    monitor.locked {
      free.append(picture)
      monitor.signal()
    }
  }

  private func announce() {
    if let first { first.arrival.fire() } else { arrival.fire() }
  }

  /// Ends all waiting.
  package func close() {
    monitor.locked {
      isClosed = true
      monitor.signal()
    }
    announce()
  }
}
