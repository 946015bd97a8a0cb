package import Media
package import Platform

/// Detects a camera whose picture no longer changes, bit for bit. A sensor always has some noise, so two equal pictures
/// mean that the camera repeats one.
///
/// Some words of each picture are sampled, spread over it. Only if those are unchanged, one strip of the picture is
/// compared whole, another strip each time. So a working camera costs some hundred words per picture. Before the
/// detector reports anything, it has compared every bit twice.
///
/// Of a picture that the camera coded, its length and some words are sampled. Even a still scene gives other bits for each
/// picture (`frame_num`, `idr_pic_id`), so equal ones mean that the camera repeats a picture. An encoder that goes on
/// coding one picture of its sensor is not noticed.
package struct StillnessDetector {
  /// The time without a change after which the picture counts as frozen.
  static let patience = Duration.seconds(10)
  /// The number of 8-byte words sampled in each picture, two thirds of them luma.
  static let sampleCount = 384
  /// The number of words sampled at the beginning of a coded picture, and of those behind them at most.
  static let codedSampleCount = 32
  /// The number of strips of a picture: a prime, so that a periodic change cannot hide.
  package static let stripCount = 17

  /// The result for one picture.
  package enum Change: Equatable {
    /// Nothing new.
    case none
    /// The picture has not changed since that time.
    case froze(since: Instant)
    /// The picture changed again after that time.
    case thawed(after: Duration)
  }

  /// `true` if the picture is frozen.
  package private(set) var isFrozen = false
  private var size = PictureSize(width: 0, height: 0)
  private var samples: UInt64 = 0
  private var strips = InlineArray<17, UInt64>(repeating: 0)
  /// The number of strips in a row that were read or compared without a change.
  private var strip = 0
  private var since: Instant?

  /// Creates a detector without a history.
  package init() {}

  /// Clears the history: the next picture comes from another or a restarted camera.
  mutating func restart() { self = StillnessDetector() }

  /// Examines the next picture, taken at `time`.
  package mutating func note(_ planes: NV12Planes, at time: Instant) -> Change {
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
    // Every strip was stored once and found equal once.
    guard !isFrozen, time - start >= Self.patience, strip >= 2 * Self.stripCount else { return .none }
    isFrozen = true
    return .froze(since: start)
  }

  /// Examines the next picture, coded by the camera, taken at `time`.
  package mutating func note(_ coded: UnsafeRawBufferPointer, at time: Instant) -> Change {
    let sampled = Self.sample(coded)
    guard sampled == samples, let start = since else {
      samples = sampled
      return change(at: time)
    }
    guard !isFrozen, time - start >= Self.patience else { return .none }
    isFrozen = true
    return .froze(since: start)
  }

  private mutating func change(at time: Instant) -> Change {
    let former = since
    since = time
    strip = 0
    guard isFrozen, let former else { return .none }
    isFrozen = false
    return .thawed(after: time - former)
  }

  /// Returns a hash of the length, and of some words: the first ones, where the headers are, the last ones, and others
  /// between them. A short picture is hashed whole.
  private static func sample(_ coded: UnsafeRawBufferPointer) -> UInt64 {
    var hash = mix(0, UInt64(coded.count))
    let words = coded.count / 8
    guard words > 0 else { return coded.reduce(hash) { mix($0, UInt64($1)) } }
    let step = max(1, words / codedSampleCount)
    var word = 0
    while word < words {
      hash = mix(hash, coded.loadUnaligned(fromByteOffset: word * 8, as: UInt64.self))
      word += word < codedSampleCount ? 1 : step
    }
    return mix(hash, coded.loadUnaligned(fromByteOffset: coded.count - 8, as: UInt64.self))
  }

  /// Returns a hash of some words, spread over the picture.
  private static func sample(_ planes: NV12Planes) -> UInt64 {
    var hash: UInt64 = 0
    let (columns, rows) = (planes.size.width - 8, planes.size.height)
    for index in 0..<sampleCount {
      // Golden-section steps cover a picture of any size evenly. Each row has its own columns, so no edge in the scene
      // falls between the samples.
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

  /// Returns a hash of all bytes of a strip.
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
        // Hashes the remainder together with bytes before it: a picture is at least 16 wide.
        if column < width { hash = mix(hash, line.loadUnaligned(fromByteOffset: width - 8, as: UInt64.self)) }
      }
    }
    add(planes.luma, stride: planes.lumaStride, rows: height)
    add(planes.chroma, stride: planes.chromaStride, rows: height / 2)
    return hash
  }

  /// Performs one round of FNV-1a over words; the shift mixes the high half into the low half.
  private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    let product = (hash ^ word) &* 0x9e37_79b9_7f4a_7c15
    return product ^ (product >> 32)
  }
}
