import Glibc
import Media
import Threading

/// The bytes of one access unit in memory of our own, on their way from the encoder to the network: the encoder's
/// own bytes are gone with its next picture. It may come in parts, of which the first are sent while the encoder makes
/// the next.
final class CodedPicture: @unchecked Sendable {
  // Sendable: it is held by one stage at a time, as the queue hands it on. While it comes in parts, the encode stage
  // writes behind what the send stage reads: neither touches the other's bytes, NAL units or figures, and the queue's
  // monitor stands between writing a part and reading it.
  private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
  fileprivate var nalUnitCount = 0
  private var byteCount = 0
  private var isKeyFrame = false
  private(set) var timestamp = MediaTime.zero
  private var captured = MediaTime.zero
  /// When the encoder was done with it; before its last part was taken, zero or earlier.
  var encoded: MediaTime { taken.encoded }
  /// Who needs it, on the send thread.
  var holders = 0
  /// The NAL units that were committed, and what else the queue knows of it; under the queue's monitor.
  fileprivate var committed = Progress()
  /// What of that the send thread has taken; its own.
  fileprivate var taken = Progress()
  /// The first NAL unit of the part that the send thread has taken last.
  private var partStart = 0

  fileprivate struct Progress {
    var nalUnits = 0
    /// When the encoder was done with them.
    var encoded = MediaTime.zero
    /// Whether nothing follows.
    var isEnded = false
    /// Whether the encoder gave it up.
    var isBroken = false
  }

  /// The most NAL units in one picture.
  static let nalUnitLimit = 1024

  /// Memory for `capacity` bytes; pages are not touched before a picture needs them.
  init(capacity: Int) throws(FramePoolError) {
    let mapped = mmap(
      nil, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | CInt(MAP_NORESERVE), -1, 0)
    guard let mapped, mapped != MAP_FAILED else { throw .memory(bytes: capacity) }
    memory = mapped
    self.capacity = capacity
    nalUnits = .allocate(capacity: Self.nalUnitLimit)
  }

  deinit {
    munmap(memory, capacity)
    nalUnits.deallocate()
  }

  /// Takes a copy of `unit`, behind the parts that came before it; false where it does not fit.
  func store(_ unit: borrowing AccessUnit) -> Bool {
    if unit.isFirstPart { (nalUnitCount, byteCount) = (0, 0) }
    guard unit.nalUnits.count <= Self.nalUnitLimit - nalUnitCount, unit.payloadBytes <= capacity - byteCount else {
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
    // The send stage may read them by the second part.
    guard unit.isFirstPart else { return true }
    isKeyFrame = unit.isKeyFrame
    timestamp = unit.timestamp
    captured = unit.captured
    return true
  }

  /// What was taken last: all of it, where it came as one. Valid until the picture goes back to the queue.
  var part: AccessUnit {
    AccessUnit(
      nalUnits: UnsafeBufferPointer(rebasing: nalUnits[partStart..<taken.nalUnits]), isKeyFrame: isKeyFrame,
      timestamp: timestamp, captured: captured, isFirstPart: partStart == 0, isLastPart: taken.isEnded)
  }

  /// Whether the encoder failed in its middle: nothing follows, and the rest is not worth sending.
  var isBroken: Bool { taken.isBroken }

  /// Takes what was committed since the last time.
  fileprivate func takePart() {
    partStart = taken.nalUnits
    taken = committed
  }

  /// The access unit, to be read once its last part was taken; valid until the picture goes back to the queue.
  var accessUnit: AccessUnit {
    AccessUnit(
      nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<nalUnitCount]), isKeyFrame: isKeyFrame,
      timestamp: timestamp, captured: captured)
  }
}

/// A fixed number of coded pictures between the encoder and the network, in order. Nothing is dropped here,
/// because what follows a missing picture cannot be decoded: an encoder that finds no room waits, and meanwhile the
/// newest frame wins before it. The last picture may be open: then parts of it follow.
final class CodedPictureQueue: @unchecked Sendable {
  // Sendable: the lists are touched only under the monitor.
  private let monitor = Monitor()
  private var free: [CodedPicture] = []
  private var filled: [CodedPicture] = []
  /// Pictures that are being written or wait to be taken.
  private var queued = 0
  private var committed = 0
  private var isClosed = false
  /// Rings when a picture has come, or the queue was closed.
  let arrival: Interrupt

  /// The most pictures that wait for the network; the reference design's figure.
  static let depth = 3

  /// Room for pictures of at most `capacity` bytes: ``depth`` that wait, and `held` that were taken and are still needed.
  /// Memory is used only for what there ever was at a time.
  init(capacity: Int, held: Int = 1) throws {
    arrival = try Interrupt()
    let count = Self.depth + max(1, held)
    free.reserveCapacity(count)
    filled.reserveCapacity(Self.depth)
    for _ in 0..<count { free.append(try CodedPicture(capacity: capacity)) }
  }

  /// Waits for an empty picture to write into; nil once the queue is closed.
  func beginWrite() -> CodedPicture? {
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

  /// Hands a written picture on, or what was written of it since the last time; the encoder was done with that at
  /// `encoded`, which may be zero for a part, and more follows unless `isEnded`.
  func commit(_ picture: CodedPicture, encoded: MediaTime, isEnded: Bool = true) {
    let written = picture.nalUnitCount
    monitor.locked {
      // Else it is there, and the send stage has not got beyond it.
      if filled.last !== picture { filled.append(picture) }
      picture.committed.nalUnits = written
      picture.committed.encoded = encoded
      picture.committed.isEnded = isEnded
      if isEnded { committed += 1 }
    }
    arrival.fire()
  }

  /// Ends a picture that was handed on in part and to which nothing will be added.
  func breakOff(_ picture: CodedPicture) {
    monitor.locked {
      picture.committed.isEnded = true
      picture.committed.isBroken = true
      committed += 1
    }
    arrival.fire()
  }

  /// How many pictures were handed on so far.
  var committedCount: Int { monitor.locked { committed } }

  /// Takes a picture back that was not written after all.
  func abandon(_ picture: CodedPicture) {
    monitor.locked {
      queued -= 1
      free.append(picture)
      monitor.signal()
    }
  }

  /// What ``take()`` found.
  enum Arrival {
    /// A picture with a new ``CodedPicture/part``.
    case picture(CodedPicture)
    case none
    case closed
  }

  /// Takes the next picture, with one holder, or what is new of the one that was taken in part; without waiting. Pictures
  /// that were committed before the queue was closed still come.
  func take() -> Arrival {
    monitor.locked {
      guard let picture = filled.first else { return isClosed ? .closed : .none }
      guard picture.committed.isEnded || picture.committed.nalUnits > picture.taken.nalUnits else { return .none }
      if picture.taken.nalUnits == 0 { picture.holders = 1 }
      picture.takePart()
      guard picture.taken.isEnded else { return .picture(picture) }
      filled.removeFirst()
      queued -= 1
      monitor.signal()
      return .picture(picture)
    }
  }

  /// One holder of a taken picture needs it no longer; the last one gives it back.
  func release(_ picture: CodedPicture) {
    picture.holders -= 1
    guard picture.holders == 0 else { return }
    monitor.locked {
      free.append(picture)
      monitor.signal()
    }
  }

  /// Ends all waiting.
  func close() {
    monitor.locked {
      isClosed = true
      monitor.signal()
    }
    arrival.fire()
  }
}
