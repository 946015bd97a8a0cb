import Glibc
public import Platform
import Synchronization

/// A fixed number of NV12 frames in preallocated memory. Every page is touched at the start, so that no frame causes a
/// page fault and nothing is allocated later. If ``FrameMemory/isKept`` is false, memory is not preallocated.
///
/// A frame may also stand on its side, with the pool's height as its width: frames of both shapes share the memory, so that a
/// rotation needs none of its own.
///
/// Checkout and return are a compare-and-swap on one word; any thread may do either.
public final class FramePool: FrameOwner, @unchecked Sendable {
  // Sendable: the memory's layout never changes after `init`, and `free` hands each slot to one holder.

  /// The size of every frame that does not stand on its side.
  public let size: PictureSize
  /// The number of frames, in use or not.
  public let capacity: Int
  /// The limit of frames in a pool: a word has one bit for each.
  public static let capacityLimit = 64
  /// The default number of frames: one being captured, one waiting, one being encoded, and spares.
  public static let defaultCapacity = 6

  /// The memory of all frames; nil where each frame's memory is mapped and unmapped with it.
  private let memory: UnsafeMutableRawPointer?
  /// The address of each slot's memory, where it is mapped.
  private let starts: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  private let frameBytes: Int
  private let stride: Int
  /// The size and the stride of a frame that stands on its side.
  private let sideways: (size: PictureSize, stride: Int)
  private let free: Atomic<UInt64>

  /// Maps and touches `capacity` frames of `size`; their rows are 64-byte aligned, those of a frame on its side may be less so.
  /// Where memory is not kept, each frame is mapped on its own, and the pool only limits their number.
  ///
  /// - Throws: ``FramePoolError`` for a size or number out of range, or where memory is short.
  public init(
    size: PictureSize, capacity: Int = FramePool.defaultCapacity, memory use: FrameMemory = FrameMemory()
  ) throws(FramePoolError) {
    guard size.isEncodable else { throw .size(size) }
    guard (1...Self.capacityLimit).contains(capacity) else { throw .capacity(capacity) }
    self.size = size
    self.capacity = capacity
    stride = (size.width + 63) / 64 * 64
    // Each frame starts on a page, so that two threads never share one.
    frameBytes = (stride * size.height * 3 / 2 + 4095) / 4096 * 4096
    let turned = PictureSize(width: size.height, height: size.width)
    sideways = (turned, Self.rowBytes(of: turned, within: frameBytes))
    if use.isKept {
      guard let mapped = Self.map(frameBytes * capacity, CInt(MAP_POPULATE)) else {
        throw .memory(bytes: frameBytes * capacity)
      }
      memory = mapped
      // MAP_POPULATE is only a hint, so each page is touched. The frames are black, so that a frame shown too early is
      // not green.
      for index in 0..<capacity {
        let start = mapped + index * frameBytes
        memset(start, 16, stride * size.height)
        memset(start + stride * size.height, 128, stride * size.height / 2)
      }
    } else {
      memory = nil
    }
    starts = .allocate(capacity: capacity)
    free = Atomic(capacity == 64 ? UInt64.max : (1 << UInt64(capacity)) - 1)
    for index in 0..<capacity {
      let start: UnsafeMutableRawPointer? = if let memory { memory + index * frameBytes } else { nil }
      (starts + index).initialize(to: start)
    }
  }

  deinit {
    // Frames hold the pool: none is checked out, and a frame with its own memory has been unmapped.
    if let memory { munmap(memory, frameBytes * capacity) }
    starts.deallocate()
  }

  private static func map(_ bytes: Int, _ flags: CInt = 0) -> UnsafeMutableRawPointer? {
    let mapped = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0)
    return mapped == MAP_FAILED ? nil : mapped
  }

  /// Returns the stride of pictures of `size` that have `bytes` for both planes: rows have the best alignment that these allow.
  private static func rowBytes(of size: PictureSize, within bytes: Int) -> Int {
    let strides = [64, 32, 16, 8].map { (size.width + $0 - 1) / $0 * $0 }
    return strides.first { $0 * size.height * 3 / 2 <= bytes } ?? size.width
  }

  /// Checks out a free frame; returns nil where all are in use. The frame still contains its previous picture, which may have had
  /// the other shape. If `isSideways` is `true`, the frame's width is the pool's height.
  public func checkout(
    isSideways: Bool = false, color: ColorDescription, timestamp: Instant, captured: Instant
  ) -> Frame? {
    var current = free.load(ordering: .relaxed)
    while current != 0 {
      let slot = current.trailingZeroBitCount
      let (exchanged, original) = free.weakCompareExchange(
        expected: current, desired: current & ~(1 << UInt64(slot)), ordering: .acquiring)
      if exchanged {
        guard let start = starts[slot] ?? Self.map(frameBytes) else {
          free.bitwiseOr(1 << UInt64(slot), ordering: .releasing)
          return nil
        }
        starts[slot] = start
        return Frame(
          planes: planes(at: start, isSideways: isSideways), color: color, timestamp: timestamp, captured: captured,
          slot: slot, owner: self)
      }
      current = original
    }
    return nil
  }

  /// The number of frames that can be checked out now.
  public var available: Int { free.load(ordering: .relaxed).nonzeroBitCount }

  /// Takes a frame's slot back; called when the frame ends.
  public override func recycle(slot: Int) {
    if memory == nil, let start = starts[slot] {
      munmap(start, frameBytes)
      starts[slot] = nil
    }
    free.bitwiseOr(1 << UInt64(slot), ordering: .releasing)
  }

  private func planes(at start: UnsafeMutableRawPointer, isSideways: Bool) -> NV12Planes {
    let shape = isSideways ? sideways : (size: size, stride: stride)
    let chroma = start + shape.stride * shape.size.height
    return NV12Planes(
      size: shape.size,
      luma: start.assumingMemoryBound(to: UInt8.self), lumaStride: shape.stride,
      chroma: chroma.assumingMemoryBound(to: UInt8.self), chromaStride: shape.stride)
  }
}

/// A source's handling of its frames' memory.
public struct FrameMemory: Hashable, Sendable {
  /// `true` preallocates the frames' memory and keeps it; `false` maps and unmaps each frame's memory with the frame.
  public var isKept: Bool
  /// `true` passes a driver's buffers on as frames where possible; `false` copies them.
  public var isLent: Bool

  /// Creates the settings; the defaults are the best ones.
  public init(isKept: Bool = true, isLent: Bool = true) {
    self.isKept = isKept
    self.isLent = isLent
  }
}

/// An error from creating a frame pool.
public enum FramePoolError: Failure {
  /// The size is odd, too small or too large.
  case size(PictureSize)
  /// The number of frames is out of range.
  case capacity(Int)
  /// The system does not have enough memory.
  case memory(bytes: Int)

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .size(let size):
      "a picture of \(size) cannot be encoded: width and height must be even, from 16 to \(PictureSize.limit)"
    case .capacity(let count):
      "a frame pool of \(count) frames: choose 1 to \(FramePool.capacityLimit)"
    case .memory(let bytes):
      "no memory for the frame pool: \(bytes / 1_048_576) MiB are needed; choose a smaller size"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind {
    switch self {
    case .size, .capacity: .usage
    case .memory: .system
    }
  }
}
