import Media

/// Keeps `idr_pic_id` of two IDR pictures in a row apart, as ITU-T H.264 clause 7.4.3 wants it, where they come from two
/// encoders, each of which counts for itself: a turn, or a fail-over, in the very frame after a key frame.
final class IDRSuccession: AccessUnitSink {
  /// That of the last picture; nil where it was no IDR.
  private var last: Int?
  /// Where pictures go on to.
  private var sink: (any AccessUnitSink)?
  /// Whether the picture is a new encoder's first one.
  private var isFirst = false
  /// Whether the picture was handed on whose parts come.
  private var isPassing = true

  /// None yet.
  init() {}

  /// Encodes a picture by `encode`, which is told whether it is to be a key frame and gives it to this object, and hands
  /// it on to `sink`. Where it is a new encoder's first one and repeats the id of the one before, it is kept back and
  /// encoded once more as a key frame: then it has another.
  ///
  /// - Throws: What `encode` throws.
  func pass(
    ofNewEncoder isFirst: Bool, keyFrame: Bool, to sink: any AccessUnitSink,
    encode: (_ keyFrame: Bool) throws(EncoderError) -> Void
  ) throws(EncoderError) {
    (self.sink, self.isFirst, isPassing) = (sink, isFirst, true)
    defer { self.sink = nil }
    try encode(keyFrame)
    guard !isPassing else { return }
    self.isFirst = false
    try encode(true)
  }

  /// Notes a picture that was handed on otherwise.
  func note(_ unit: borrowing AccessUnit) {
    if unit.isFirstPart { last = unit.isKeyFrame ? unit.idrPictureID : nil }
  }

  /// Takes what is encoded. A picture's first part decides for the others.
  func take(_ unit: borrowing AccessUnit) {
    if unit.isFirstPart {
      let identifier = unit.isKeyFrame ? unit.idrPictureID : nil
      isPassing = !(isFirst && identifier != nil && identifier == last)
      if isPassing { last = identifier }
    }
    if isPassing { sink?.take(unit) }
  }
}
