import Synchronization

/// Some of the eight orientations.
public struct OrientationSet: OptionSet, Hashable, Sendable {
  /// A bit for each, as ``Orientation/index``.
  public let rawValue: UInt8

  /// A set of these bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The set of one orientation.
  public init(_ orientation: Orientation) { self.init(rawValue: 1 << UInt8(orientation.index)) }

  /// Whether it is among them.
  public func contains(_ orientation: Orientation) -> Bool { contains(OrientationSet(orientation)) }
}

extension Orientation {
  /// Where it stands in ``all``. For every picture: `allCases` would allocate.
  public var index: Int { rotation.degrees / 90 + (isMirrored ? 4 : 0) }
}

/// What encoders lay by themselves, told to whoever makes the frames: pictures that would need a pass of their own to
/// be turned are handed on as they are then, with ``Frame/orientation``.
///
/// It is advice for the next frame. A frame that comes by older advice is laid as well, only not for free.
public final class TurnOffer: Sendable {
  private let wide = Atomic<UInt8>(0)
  private let tall = Atomic<UInt8>(0)

  /// Nothing is laid by an encoder so far.
  public init() {}

  /// From now on the encoder of pictures of `size` lays `orientations`. From any thread.
  public func set(_ orientations: OrientationSet, for size: PictureSize) {
    if size.width >= size.height {
      wide.store(orientations.rawValue, ordering: .relaxed)
    } else {
      tall.store(orientations.rawValue, ordering: .relaxed)
    }
  }

  /// Whether frames may be left to be laid by `orientation`, which have `size` afterwards. From any thread.
  public func covers(_ orientation: Orientation, for size: PictureSize) -> Bool {
    let bits = size.width >= size.height ? wide.load(ordering: .relaxed) : tall.load(ordering: .relaxed)
    return OrientationSet(rawValue: bits).contains(orientation)
  }
}
