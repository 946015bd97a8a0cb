import Synchronization

/// A set of orientations.
public struct OrientationSet: OptionSet, Hashable, Sendable {
  /// The bits, one for each orientation, as ``Orientation/index``.
  public let rawValue: UInt8

  /// Creates a set of these bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Creates the set of one orientation.
  public init(_ orientation: Orientation) { self.init(rawValue: 1 << UInt8(orientation.index)) }

  /// Returns `true` if the set contains `orientation`.
  public func contains(_ orientation: Orientation) -> Bool { contains(OrientationSet(orientation)) }
}

extension Orientation {
  /// The orientation's position in ``all``. It is computed for every picture: `allCases` would allocate.
  public var index: Int { rotation.degrees / 90 + (isMirrored ? 4 : 0) }
}

/// The orientations that encoders apply by themselves, shared with the sources. A source that would need an extra pass
/// to rotate a picture passes it on unrotated, with ``Frame/orientation``.
///
/// The offer is advice for the next frame. A frame that follows older advice is rotated as well, but at a cost.
public final class TurnOffer: Sendable {
  private let wide = Atomic<UInt8>(0)
  private let tall = Atomic<UInt8>(0)

  /// Creates an offer without orientations.
  public init() {}

  /// Sets the `orientations` that the encoder of pictures of `size` applies. Any thread may call it.
  public func set(_ orientations: OrientationSet, for size: PictureSize) {
    if size.width >= size.height {
      wide.store(orientations.rawValue, ordering: .relaxed)
    } else {
      tall.store(orientations.rawValue, ordering: .relaxed)
    }
  }

  /// Returns `true` if the encoder can apply `orientation` to frames that have `size` afterwards. Any thread may call
  /// it.
  public func covers(_ orientation: Orientation, for size: PictureSize) -> Bool {
    let bits = size.width >= size.height ? wide.load(ordering: .relaxed) : tall.load(ordering: .relaxed)
    return OrientationSet(rawValue: bits).contains(orientation)
  }
}
