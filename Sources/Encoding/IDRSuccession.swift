import Media

/// A sink that keeps the `idr_pic_id` of two consecutive IDR pictures different, as ITU-T H.264 clause 7.4.3 requires.
/// Two encoders count independently, so the values can repeat when the live encoder changes directly after a key frame.
final class IDRSuccession: AccessUnitSink {
  /// The `idr_pic_id` of the last picture; nil if that was not an IDR picture.
  private var last: Int?
  /// The sink that pictures are passed on to.
  private var sink: (any AccessUnitSink)?
  /// `true` if the picture is the first one of a new encoder.
  private var isFirst = false
  /// `true` if the parts of the current picture are passed on.
  private var isPassing = true

  /// Encodes a picture by `encode`, which delivers to this object, and passes it on to `sink`. The argument of `encode`
  /// requests a key frame. If the first picture of a new encoder repeats the previous id, it is dropped and encoded
  /// again as a key frame, which then has another id.
  ///
  /// - Throws: The error that `encode` throws.
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

  /// Returns `true` if `unit` is a key frame that repeats the id of the last picture, also a key frame.
  func isRepeated(by unit: borrowing AccessUnit) -> Bool {
    guard let last, unit.isKeyFrame else { return false }
    return unit.idrPictureID == last
  }

  /// Records a picture that was delivered another way.
  func note(_ unit: borrowing AccessUnit) {
    if unit.isFirstPart { last = unit.isKeyFrame ? unit.idrPictureID : nil }
  }

  /// Takes an encoded part of a picture. A picture's first part decides for the others.
  func take(_ unit: borrowing AccessUnit) {
    if unit.isFirstPart {
      isPassing = !isFirst || last == nil || !unit.isKeyFrame || unit.idrPictureID != last
      if isPassing { note(unit) }
    }
    if isPassing { sink?.take(unit) }
  }
}
