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
  private var timestamp = MediaTime.zero
  private var captured = MediaTime.zero
  /// When the encoder was done with it.
  var encoded = MediaTime.zero

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
  private var isClosed = false

  /// The most pictures that are in flight; the reference design's figure.
  static let depth = 3

  /// Room for pictures of at most `capacity` bytes.
  init(capacity: Int) throws(FramePoolError) {
    free.reserveCapacity(Self.depth)
    filled.reserveCapacity(Self.depth)
    for _ in 0..<Self.depth { free.append(try CodedPicture(capacity: capacity)) }
  }

  /// Waits for an empty picture to write into; nil once the queue is closed.
  func beginWrite() -> CodedPicture? {
    monitor.locked {
      while free.isEmpty, !isClosed { monitor.wait() }
      return isClosed ? nil : free.popLast()
    }
  }

  /// Hands a written picture on.
  func commit(_ picture: CodedPicture) {
    monitor.locked {
      filled.append(picture)
      monitor.signal()
    }
  }

  /// Takes a picture back, unsent or sent.
  func recycle(_ picture: CodedPicture) {
    monitor.locked {
      free.append(picture)
      monitor.signal()
    }
  }

  /// What `next` found.
  enum Arrival {
    case picture(CodedPicture)
    case timeout
    case closed
  }

  /// Waits for the next picture until `deadline`. Pictures that were committed before the queue was closed still come.
  func next(until deadline: MediaTime) -> Arrival {
    monitor.locked {
      while filled.isEmpty, !isClosed {
        if !monitor.wait(until: deadline), filled.isEmpty { return isClosed ? .closed : .timeout }
      }
      return filled.isEmpty ? .closed : .picture(filled.removeFirst())
    }
  }

  /// Ends all waiting.
  func close() {
    monitor.locked {
      isClosed = true
      monitor.signal()
    }
  }
}
