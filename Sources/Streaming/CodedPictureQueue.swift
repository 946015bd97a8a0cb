import Glibc
import Media
import Threading

/// The bytes of one access unit in memory of our own, on their way from the encoder to the network: the encoder's
/// own bytes are gone with its next picture.
final class CodedPicture: @unchecked Sendable {
  // Sendable: it is held by one stage at a time, as the queue hands it on.
  private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
  private var nalUnitCount = 0
  private var isKeyFrame = false
  private(set) var timestamp = MediaTime.zero
  private var captured = MediaTime.zero
  /// When the encoder was done with it.
  var encoded = MediaTime.zero
  /// Who needs it, on the send thread.
  var holders = 0

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

  /// Takes a copy of `unit`; false where it does not fit.
  func store(_ unit: borrowing AccessUnit) -> Bool {
    guard unit.nalUnits.count <= Self.nalUnitLimit, unit.payloadBytes <= capacity else { return false }
    var end = memory
    nalUnitCount = 0
    for source in unit.nalUnits {
      guard let bytes = source.bytes.baseAddress else { continue }
      end.copyMemory(from: bytes, byteCount: source.bytes.count)
      guard let copy = NALUnit(UnsafeRawBufferPointer(start: end, count: source.bytes.count)) else { continue }
      nalUnits.initializeElement(at: nalUnitCount, to: copy)
      nalUnitCount += 1
      end += source.bytes.count
    }
    isKeyFrame = unit.isKeyFrame
    timestamp = unit.timestamp
    captured = unit.captured
    return true
  }

  /// The access unit; valid until the picture goes back to the queue.
  var accessUnit: AccessUnit {
    AccessUnit(
      nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<nalUnitCount]), isKeyFrame: isKeyFrame,
      timestamp: timestamp, captured: captured)
  }
}

/// A fixed number of coded pictures between the encoder and the network, in order. Nothing is dropped here,
/// because what follows a missing picture cannot be decoded: an encoder that finds no room waits, and meanwhile the
/// newest frame wins before it.
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
      return free.popLast()
    }
  }

  /// Hands a written picture on.
  func commit(_ picture: CodedPicture) {
    monitor.locked {
      filled.append(picture)
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
    case picture(CodedPicture)
    case none
    case closed
  }

  /// Takes the next picture, with one holder, without waiting. Pictures that were committed before the queue was closed
  /// still come.
  func take() -> Arrival {
    monitor.locked {
      guard !filled.isEmpty else { return isClosed ? .closed : .none }
      let picture = filled.removeFirst()
      picture.holders = 1
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
