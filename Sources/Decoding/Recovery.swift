import Adaptors

/// The way from a recovery point to right pictures (ITU-T H.264 clause D.2.8): what is shown before the picture that the
/// recovery point names refers to pictures that never came.
struct Recovery {
  /// The SEI for libavcodec, which would show nothing before a key frame otherwise: a recovery point at once. Which pictures are
  /// right is decided here.
  static let message: [UInt8] = [0, 0, 0, 1, 6, 6, 1, 0xc4, 0x80]

  /// The `frame_num` of the first right reference picture.
  private let frameNumber: Int
  /// The number of the access unit with the recovery point.
  private let entry: Int64
  /// That picture, and the number of its access unit; nil before it comes.
  private var picture: (slice: SliceSyntax, number: Int64)?
  /// The access units behind that picture that are shown before it.
  private var early: Set<Int64> = []
  /// `true` once a picture has come that is shown after that picture.
  private var hasLater = false
  private var isShown = false
  /// The number of frames since that picture.
  private var framesBehind = 0

  /// The number of frames after which no reference is one that never came, nor any command that means such a one.
  private static let settlingFrames = 64

  /// The limit of pictures that are shown before one that came earlier: a decoded picture buffer has 16 frames.
  private static let earlyLimit = 64

  /// Creates the way from `point`, which is in the access unit of `slice`.
  init(_ point: RecoveryPoint, _ slice: SliceSyntax, _ sequence: SequenceSyntax, number: Int64) {
    entry = number
    frameNumber = (slice.frameNumber + point.frames) % (1 << sequence.frameNumberBits)
  }

  /// Follows the next frame. Returns `true` if it is shown before the first right picture, and libavcodec need not be able to
  /// decode it: a B picture whose references never came. The P pictures are those that bring the refresh.
  mutating func follow(_ slice: SliceSyntax, number: Int64) -> Bool {
    guard let picture else {
      guard slice.isReference, slice.frameNumber == frameNumber else { return slice.isBidirectional }
      picture = (slice, number)
      return false
    }
    framesBehind = min(framesBehind + 1, Self.settlingFrames)
    guard !hasLater, early.count < Self.earlyLimit, slice.isShown(before: picture.slice) else {
      hasLater = true
      return false
    }
    early.insert(number)
    return true
  }

  /// `true` if the recovery is so long ago that every reference is there.
  var isSettled: Bool { framesBehind >= Self.settlingFrames }

  /// Returns `true` if the picture of this access unit is right. Pictures come in the order in which they are shown.
  mutating func isRight(_ number: Int64) -> Bool {
    if number == picture?.number { isShown = true }
    return isShown && number >= entry && !early.contains(number)
  }
}
