package import Media

/// Tells whether a camera's picture has stopped to change, bit for bit: a sensor always has some noise, so that a camera
/// of which two pictures are equal delivers one of them again and again.
///
/// Of each picture some words are looked at, spread over it. Only where they are what they were before, a strip of the
/// picture is looked at whole, another one each time. So a camera that works costs some hundred words a picture, and
/// nothing is said before every bit was compared twice.
package struct StillnessDetector {
  /// For so long nothing must have changed.
  static let patience = MediaTime(nanoseconds: 10_000_000_000)
  /// Words of 8 bytes that are looked at in each picture, two thirds of them luma.
  static let sampleCount = 384
  /// Strips of a picture: a prime, so that what repeats every so many pictures does not hide from it.
  static let stripCount = 17

  /// What a picture made of it.
  package enum Change: Equatable {
    /// Nothing new.
    case none
    /// It has been the same since then.
    case froze(since: MediaTime)
    /// It was the same for so long, and is no longer.
    case thawed(after: MediaTime)
  }

  /// Whether nothing changes.
  private(set) var isFrozen = false
  private var size = PictureSize(width: 0, height: 0)
  private var samples: UInt64 = 0
  private var strips = InlineArray<17, UInt64>(repeating: 0)
  /// How many strips in a row were looked at, or looked at again, without a change.
  private var strip = 0
  private var since: MediaTime?

  /// One that saw nothing yet.
  package init() {}

  /// Forgets what it saw: what comes is another camera, or the same one anew.
  mutating func restart() { self = StillnessDetector() }

  /// Looks at the next picture, taken at `time`.
  package mutating func note(_ planes: NV12Planes, at time: MediaTime) -> Change {
    let sampled = Self.sample(planes)
    guard sampled == samples, planes.size == size, let start = since else {
      (samples, size) = (sampled, planes.size)
      return change(at: time)
    }
    let index = strip % Self.stripCount
    let hash = Self.hash(planes, strip: index)
    guard strip < Self.stripCount || strips[index] == hash else { return change(at: time) }
    strips[index] = hash
    strip += 1
    // Every strip was remembered once and found the same once.
    guard !isFrozen, time - start >= Self.patience, strip >= 2 * Self.stripCount else { return .none }
    isFrozen = true
    return .froze(since: start)
  }

  private mutating func change(at time: MediaTime) -> Change {
    let former = since
    since = time
    strip = 0
    guard isFrozen, let former else { return .none }
    isFrozen = false
    return .thawed(after: time - former)
  }

  /// A number of some words, spread over the picture.
  private static func sample(_ planes: NV12Planes) -> UInt64 {
    var hash: UInt64 = 0
    let (columns, rows) = (planes.size.width - 8, planes.size.height)
    for index in 0..<sampleCount {
      // Golden-section steps cover the picture evenly whatever its size; with columns of their own, so that no edge of
      // the scene is missed for lying between.
      let isLuma = index % 3 < 2
      let base = isLuma ? planes.luma : planes.chroma
      let row = isLuma ? index * rows / sampleCount : index * rows / 2 / sampleCount
      let column = index &* 40_503 % (columns + 1)
      let word = UnsafeRawPointer(base + row * (isLuma ? planes.lumaStride : planes.chromaStride) + column)
        .loadUnaligned(as: UInt64.self)
      hash = mix(hash, word)
    }
    return hash
  }

  /// A number of all bytes of a strip.
  private static func hash(_ planes: NV12Planes, strip: Int) -> UInt64 {
    var hash: UInt64 = 0
    let (width, height) = (planes.size.width, planes.size.height)
    func add(_ base: UnsafePointer<UInt8>, stride: Int, rows: Int) {
      for row in strip * rows / stripCount..<(strip + 1) * rows / stripCount {
        let line = UnsafeRawPointer(base + row * stride)
        var column = 0
        while column + 8 <= width {
          hash = mix(hash, line.loadUnaligned(fromByteOffset: column, as: UInt64.self))
          column += 8
        }
        // The rest again with what is before it: a picture is at least 16 wide.
        if column < width { hash = mix(hash, line.loadUnaligned(fromByteOffset: width - 8, as: UInt64.self)) }
      }
    }
    add(planes.luma, stride: planes.lumaStride, rows: height)
    add(planes.chroma, stride: planes.chromaStride, rows: height / 2)
    return hash
  }

  /// One round of FNV-1a over words, with the high half brought down.
  private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    let product = (hash ^ word) &* 0x9e37_79b9_7f4a_7c15
    return product ^ (product >> 32)
  }
}
