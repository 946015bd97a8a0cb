import Glibc
package import Media
package import PixelConversion
package import Platform
import Synchronization

/// Converts pictures of one pixel format and size to NV12 frames, in the orientation requested at the time.
///
/// The converter keeps one pixel converter for each orientation that was used or prepared, and one frame pool for rotated
/// pictures of both aspects. It creates missing ones for the first picture that needs them. After that it allocates nothing.
package final class OrientedConverter: @unchecked Sendable {
  // Sendable: `wanted` and `served` are atomic and `failureSlot` is locked; only the source's one thread uses the rest.

  /// The rotation that makes pictures upright; the requested orientation is applied after it.
  package var base = Orientation.upright

  /// Says which frames the encoder rotates; nil if there are none, or if a rotation costs nothing extra here.
  package var offer: TurnOffer?

  private let format: PixelFormat
  private let size: PictureSize
  private let capacity: Int
  private let memory: FrameMemory
  /// The present request: the index in ``Orientation/all`` in the three low bits, the number of the request above them.
  private let wanted = Atomic<Int>(0)
  private let asked = Atomic<Int>(0)
  /// The request that the last picture fulfilled, rotated here or by the encoder.
  private let served = Atomic<Int>(0)
  /// The pixel converters, in the order of ``Orientation/all``; nil for those not yet created.
  private var converters: [PixelConverter?] = Array(repeating: nil, count: Orientation.all.count)
  private let upright: FramePool
  /// The frames for pictures with the camera's own width and height, but rotated or mirrored; often the same as
  /// `upright`.
  private var level: FramePool?
  /// The frames for pictures whose width is the camera's height, in the same memory as those of `level`.
  private var sideways: FramePool?
  /// `true` if one picture is staged before its rotation, for sources that draw or read pictures themselves.
  private let isStaged: Bool
  private var stage: FramePool?
  /// The last orientation applied here, its request, and the request that failed since.
  private var current = Orientation.upright
  private var servedNow = 0
  private var refused: Int?
  private let failureSlot = Mutex<(requested: Int, reason: any Failure)?>(nil)

  /// Creates a converter for pictures of `format` at `size`.
  ///
  /// - Parameters:
  ///   - upright: the frames for pictures without a rotation. Their memory serves rotated ones too if there are `capacity` of
  ///     them or more.
  ///   - capacity: the number of rotated frames that may be in use at once.
  ///   - memory: the handling of the rotated frames' memory.
  ///   - isStaged: `true` if ``rotate(into:as:draw:)`` will be used.
  /// - Throws: `ConversionError`.
  package init(
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
    if capacity > 0 { sideways = level }
    converters[Orientation.upright.index] = try PixelConverter(from: format, size: size)
  }

  /// Sets the orientation from the next picture on. Any thread may call it.
  package func orient(_ orientation: Orientation) {
    wanted.store(asked.add(1, ordering: .relaxed).newValue << 3 | orientation.index, ordering: .relaxed)
  }

  /// The orientation of the last picture, applied here or left to the encoder, as set by ``orient(_:)``. Any thread may
  /// read it.
  package var lastOrientation: Orientation { Self.orientation(served.load(ordering: .relaxed)) }

  /// The reason why frames do not have the requested orientation; nil if they have it, or if none was converted since
  /// the request. Any thread may read it.
  package var failure: (any Failure)? {
    let requested = wanted.load(ordering: .relaxed)
    return failureSlot.withLock { $0?.requested == requested ? $0?.reason : nil }
  }

  /// Prepares all four rotations with the mirroring requested now.
  ///
  /// - Throws: `FramePoolError` or `ConversionError`.
  package func prepare() throws {
    let isMirrored = Self.orientation(wanted.load(ordering: .relaxed)).isMirrored
    for rotation in Rotation.allCases { try ready(base.then(Orientation(rotation, mirrored: isMirrored))) }
  }

  /// Returns the orientation to apply to the next picture here, and the one that the encoder applies later.
  package func rotationPlan() -> (here: Orientation, later: Orientation) {
    let requested = wanted.load(ordering: .relaxed)
    let next = base.then(Self.orientation(requested))
    if next != .upright, let offer, offer.covers(next, for: next.size(of: size)) {
      forget()
      served.store(requested, ordering: .relaxed)
      return (.upright, next)
    }
    return (orientation(for: requested), .upright)
  }

  /// Notes a picture that is passed on as it is. It fulfils a request for the orientation that it has already.
  func notePassedOn() {
    let requested = wanted.load(ordering: .relaxed)
    if base.then(Self.orientation(requested)) == .upright { served.store(requested, ordering: .relaxed) }
  }

  /// Returns the orientation for the next picture if it is rotated here. That orientation is ready for use.
  package func orientation() -> Orientation { orientation(for: wanted.load(ordering: .relaxed)) }

  /// Returns the orientation for `requested`. If memory for a new orientation is short, returns the last one applied
  /// here and sets ``failure``.
  private func orientation(for requested: Int) -> Orientation {
    let next = base.then(Self.orientation(requested))
    if next == current {
      // The request may have returned from an orientation that failed.
      settle(next, requested)
      return current
    }
    // Tries once per request, not for every picture.
    if requested == refused { return current }
    do {
      try ready(next)
      settle(next, requested)
    } catch {
      refused = requested
      // The encoder may have rotated the last picture by another orientation.
      served.store(servedNow, ordering: .relaxed)
      failureSlot.withLock { $0 = (requested, error as? any Failure ?? SystemFailure("\(error)", errorNumber: ENOMEM)) }
    }
    return current
  }

  /// Returns a frame rotated by `orientation`; the encoder applies `later`. Both come from ``rotationPlan()``. Returns nil
  /// if all frames are in use.
  package func checkout(
    _ orientation: Orientation, then later: Orientation = .upright, color: ColorDescription, timestamp: Instant,
    captured: Instant
  ) -> Frame? {
    let pool = orientation == .upright ? upright : orientation.swapsSides ? sideways : level
    let checkout = pool?.checkout(
      isSideways: orientation.swapsSides, color: color, timestamp: timestamp, captured: captured)
    guard var frame = checkout else { return nil }
    frame.orientation = later
    return frame
  }

  /// Converts `picture` into the planes of a frame, rotated by `orientation` of ``rotationPlan()``.
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

  /// Calls `draw` with upright planes, always the same ones, and rotates the result into the planes of a frame. Rotates
  /// nothing if `draw` returns `false`.
  ///
  /// - Returns: the result of `draw`.
  /// - Throws: the error of `draw`.
  func rotate<DrawingError: Error>(
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

  private func settle(_ next: Orientation, _ requested: Int) {
    forget()
    current = next
    servedNow = requested
    served.store(requested, ordering: .relaxed)
  }

  private func forget() {
    guard refused != nil else { return }
    refused = nil
    failureSlot.withLock { $0 = nil }
  }

  private static func orientation(_ requested: Int) -> Orientation { Orientation.all[requested & 7] }

  private func ready(_ orientation: Orientation) throws {
    guard orientation != .upright else { return }
    if isStaged, stage == nil { stage = try FramePool(size: size, capacity: 1) }
    if (orientation.swapsSides ? sideways : level) == nil {
      let pool = try FramePool(size: size, capacity: capacity, memory: memory)
      if level == nil { level = pool }
      sideways = pool
    }
    if converters[orientation.index] == nil {
      converters[orientation.index] = try PixelConverter(from: format, size: size, orientation: orientation)
    }
  }
}
