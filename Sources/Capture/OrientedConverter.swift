import Glibc
import Media
import PixelConversion
import Synchronization

/// Pictures of one pixel format and size into NV12 frames of whichever orientation is wanted when one is converted.
///
/// A converter is kept for each orientation that has been used or prepared, and one frame pool for each aspect. What
/// is missing is made for the first picture that needs it; nothing is allocated afterwards.
final class OrientedConverter: @unchecked Sendable {
  // Sendable: `wanted` and `served` are atomic and `failureSlot` locked; all else is used by the source's one thread.

  /// What every picture is turned by before the wanted orientation, to stand upright.
  var base = Orientation.upright

  /// Which frames the encoder turns; nil where that is none, or where turning costs nothing of its own here.
  var offer: TurnOffer?

  private let format: PixelFormat
  private let size: PictureSize
  private let capacity: Int
  private let memory: FrameMemory
  /// What was asked for: the place in ``Orientation/all``, and above it how often something was.
  private let wanted = Atomic<Int>(0)
  private let asked = Atomic<Int>(0)
  /// What was asked for when the last picture was laid, or left to be laid, that could be laid so.
  private let served = Atomic<Int>(0)
  /// As ``Orientation/all``; nil where there is none yet.
  private var converters: [PixelConverter?] = Array(repeating: nil, count: Orientation.all.count)
  private let upright: FramePool
  /// For those with the camera's own width and height, but turned or mirrored; often the same as `upright`.
  private var level: FramePool?
  /// For those whose width is the camera's height.
  private var sideways: FramePool?
  /// One picture before it is turned, for sources that draw or read it themselves.
  private let isStaged: Bool
  private var stage: FramePool?
  /// What the last picture was laid by here, what was asked for then, and what could not be readied since.
  private var current = Orientation.upright
  private var currentWish = 0
  private var refused: Int?
  private let failureSlot = Mutex<(wish: Int, reason: any Failure)?>(nil)

  /// One for pictures of `format` at `size`.
  ///
  /// - Parameters:
  ///   - upright: frames for what is not turned; for half turns and mirrors too where they are `capacity` or more.
  ///   - capacity: how many turned frames of either aspect may be on their way at once.
  ///   - memory: what is done about theirs.
  ///   - isStaged: whether ``turn(into:as:draw:)`` is going to be used.
  /// - Throws: `ConversionError`.
  init(
    from format: PixelFormat, size: PictureSize, upright: FramePool, capacity: Int, memory: FrameMemory = FrameMemory(),
    isStaged: Bool = false
  ) throws(ConversionError) {
    self.format = format
    self.size = size
    self.upright = upright
    self.capacity = capacity
    self.memory = memory
    self.isStaged = isStaged
    if upright.capacity >= capacity { level = upright }
    converters[Orientation.upright.index] = try PixelConverter(from: format, size: size)
  }

  /// From the next picture on. From any thread.
  func orient(_ orientation: Orientation) {
    wanted.store(asked.add(1, ordering: .relaxed).newValue << 3 | orientation.index, ordering: .relaxed)
  }

  /// How the last picture was laid, here or by whom it was left to, by ``orient(_:)``. From any thread.
  var laid: Orientation { Self.orientation(served.load(ordering: .relaxed)) }

  /// Why the orientation that is wanted is not what frames are laid by; nil where it is, or where none has been
  /// converted since. From any thread.
  var failure: (any Failure)? {
    let wish = wanted.load(ordering: .relaxed)
    return failureSlot.withLock { $0?.wish == wish ? $0?.reason : nil }
  }

  /// Readies all four rotations with the mirror that is wanted now.
  ///
  /// - Throws: `FramePoolError` or `ConversionError`.
  func prepare() throws {
    let isMirrored = Self.orientation(wanted.load(ordering: .relaxed)).isMirrored
    for rotation in Rotation.allCases { try ready(base.then(Orientation(rotation, mirrored: isMirrored))) }
  }

  /// How the next picture is to be laid here, and how the frame by whoever encodes it.
  func laying() -> (here: Orientation, later: Orientation) {
    let wish = wanted.load(ordering: .relaxed)
    let next = base.then(Self.orientation(wish))
    if next != .upright, let offer, offer.covers(next, for: next.size(of: size)) {
      forget()
      served.store(wish, ordering: .relaxed)
      return (.upright, next)
    }
    return (orientation(for: wish), .upright)
  }

  /// How the next picture is to be laid, where it is laid here; can be done.
  func orientation() -> Orientation { orientation(for: wanted.load(ordering: .relaxed)) }

  /// What `wish` comes to; where memory for a new orientation is short, the last one that pictures were laid by here,
  /// and ``failure`` says so.
  private func orientation(for wish: Int) -> Orientation {
    let next = base.then(Self.orientation(wish))
    if next == current {
      // Back from what could not be done.
      settle(next, wish)
      return current
    }
    // Tried once for each time that it is asked for, not for every picture.
    if wish == refused { return current }
    do {
      try ready(next)
      settle(next, wish)
    } catch {
      refused = wish
      // The last picture may have been laid by its encoder, by another one.
      served.store(currentWish, ordering: .relaxed)
      failureSlot.withLock { $0 = (wish, error as? any Failure ?? SystemFailure("\(error)", errorNumber: ENOMEM)) }
    }
    return current
  }

  /// A frame for a picture that is laid by `orientation` here and by `later` afterwards, both of ``laying()``; nil where
  /// all are in use.
  func checkout(
    _ orientation: Orientation, then later: Orientation = .upright, color: ColorDescription, timestamp: MediaTime,
    captured: MediaTime
  ) -> Frame? {
    let pool = orientation == .upright ? upright : orientation.swapsSides ? sideways : level
    guard var frame = pool?.checkout(color: color, timestamp: timestamp, captured: captured) else { return nil }
    frame.orientation = later
    return frame
  }

  /// Lays `picture` by `orientation`, of ``laying()``, into the planes of a frame for it.
  ///
  /// - Throws: `ConversionError`.
  func convert(
    _ picture: SourcePicture, into planes: NV12Planes, as orientation: Orientation
  ) throws(ConversionError) {
    guard let converter = converters[orientation.index] else {
      preconditionFailure("an orientation that was not readied")
    }
    try converter.convert(picture, into: planes)
  }

  /// Lays what `draw` makes upright, in planes that are always the same, into the planes of a frame. Nothing is laid
  /// where `draw` says false.
  ///
  /// - Returns: what `draw` said.
  /// - Throws: what `draw` throws.
  func turn<DrawingError: Error>(
    into planes: NV12Planes, as orientation: Orientation, draw: (NV12Planes) throws(DrawingError) -> Bool
  ) throws(DrawingError) -> Bool {
    guard let picture = stage?.checkout(color: .unspecified, timestamp: .zero, captured: .zero) else {
      preconditionFailure("an orientation that was not readied")
    }
    guard try draw(picture.planes) else { return false }
    do throws(ConversionError) {
      try convert(SourcePicture(picture.planes), into: planes, as: orientation)
    } catch {
      preconditionFailure("the planes are of the sizes that both were made for: \(error)")
    }
    return true
  }

  private func settle(_ next: Orientation, _ wish: Int) {
    forget()
    current = next
    currentWish = wish
    served.store(wish, ordering: .relaxed)
  }

  private func forget() {
    guard refused != nil else { return }
    refused = nil
    failureSlot.withLock { $0 = nil }
  }

  private static func orientation(_ wish: Int) -> Orientation { Orientation.all[wish & 7] }

  private func ready(_ orientation: Orientation) throws {
    guard orientation != .upright else { return }
    if isStaged, stage == nil { stage = try FramePool(size: size, capacity: 1) }
    if orientation.swapsSides {
      if sideways == nil {
        sideways = try FramePool(size: orientation.size(of: size), capacity: capacity, memory: memory)
      }
    } else if level == nil {
      level = try FramePool(size: size, capacity: capacity, memory: memory)
    }
    if converters[orientation.index] == nil {
      converters[orientation.index] = try PixelConverter(from: format, size: size, orientation: orientation)
    }
  }
}
