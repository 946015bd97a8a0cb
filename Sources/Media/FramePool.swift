import Glibc
import Synchronization

/// A fixed number of NV12 frames in memory that is already there: every page is touched at the start, so
/// that no frame pays for a page fault, and nothing is allocated afterwards.
///
/// Checkout and return are a compare-and-swap on one word; any thread may do either.
public final class FramePool: FrameOwner, @unchecked Sendable {
  // Sendable: the memory's layout never changes after `init`, and `free` hands each slot to one holder.

  /// The size of every frame.
  public let size: PictureSize
  /// How many frames there are, in use or not.
  public let capacity: Int
  /// The most frames that a pool holds: one bit each of a word.
  public static let capacityLimit = 64
  /// What is used unless told otherwise: one being captured, one waiting, one being encoded, and spares.
  public static let defaultCapacity = 6

  private let memory: UnsafeMutableRawPointer
  private let memoryBytes: Int
  private let frameBytes: Int
  private let stride: Int
  private let free: Atomic<UInt64>

  /// Maps and touches `capacity` frames of `size`; rows are 64-byte aligned.
  ///
  /// - Throws: ``FramePoolError`` for a size or number out of range, or where memory is short.
  public init(size: PictureSize, capacity: Int = FramePool.defaultCapacity) throws(FramePoolError) {
    guard size.isEncodable else { throw .size(size) }
    guard (1...Self.capacityLimit).contains(capacity) else { throw .capacity(capacity) }
    self.size = size
    self.capacity = capacity
    stride = (size.width + 63) / 64 * 64
    // Each frame starts on a page, so that two threads never share one.
    frameBytes = (stride * size.height * 3 / 2 + 4095) / 4096 * 4096
    memoryBytes = frameBytes * capacity
    let mapped = mmap(
      nil, memoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | CInt(MAP_POPULATE), -1, 0)
    guard let mapped, mapped != MAP_FAILED else { throw .memory(bytes: memoryBytes) }
    memory = mapped
    // MAP_POPULATE is a wish; touching is not. Black, so that a frame shown too early is not green.
    for index in 0..<capacity {
      let start = mapped + index * frameBytes
      memset(start, 16, stride * size.height)
      memset(start + stride * size.height, 128, stride * size.height / 2)
    }
    free = Atomic(capacity == 64 ? UInt64.max : (1 << UInt64(capacity)) - 1)
  }

  deinit {
    munmap(memory, memoryBytes)
  }

  /// Takes a free frame out, or nil where all are in use. The picture in it is whatever it held last.
  public func checkout(color: ColorDescription, timestamp: MediaTime, captured: MediaTime) -> Frame? {
    var current = free.load(ordering: .relaxed)
    while current != 0 {
      let slot = current.trailingZeroBitCount
      let (exchanged, original) = free.weakCompareExchange(
        expected: current, desired: current & ~(1 << UInt64(slot)), ordering: .acquiring)
      if exchanged {
        return Frame(
          planes: planes(slot: slot), color: color, timestamp: timestamp, captured: captured, slot: slot, owner: self)
      }
      current = original
    }
    return nil
  }

  /// How many frames could be checked out now.
  public var available: Int { free.load(ordering: .relaxed).nonzeroBitCount }

  /// Takes a frame's slot back; called when the frame ends.
  public override func recycle(slot: Int) {
    free.bitwiseOr(1 << UInt64(slot), ordering: .releasing)
  }

  private func planes(slot: Int) -> NV12Planes {
    let start = memory + slot * frameBytes
    return NV12Planes(
      size: size,
      luma: start.assumingMemoryBound(to: UInt8.self), lumaStride: stride,
      chroma: (start + stride * size.height).assumingMemoryBound(to: UInt8.self), chromaStride: stride)
  }
}

/// Why a frame pool could not be made.
public enum FramePoolError: Failure {
  /// The size is odd, too small or too large.
  case size(PictureSize)
  /// The number of frames is out of range.
  case capacity(Int)
  /// The system has not that much memory.
  case memory(bytes: Int)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .size(let size):
      "a picture of \(size) cannot be encoded: width and height must be even, from 16 to \(PictureSize.limit)"
    case .capacity(let count):
      "a frame pool of \(count) frames: choose 1 to \(FramePool.capacityLimit)"
    case .memory(let bytes):
      "no memory for the frame pool: \(bytes / 1_048_576) MiB asked for; choose a smaller size"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .size, .capacity: .usage
    case .memory: .system
    }
  }
}
