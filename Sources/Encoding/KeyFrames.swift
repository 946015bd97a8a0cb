import Media
public import Platform

/// A clock that decides which frames become key frames: at least one in every interval, and at once on request.
public struct KeyFrameClock: Sendable {
  /// The maximum time from one key frame to the next.
  public let interval: Duration
  private var last: Instant?
  private var isRequested = false

  /// Creates a clock whose first frame is a key frame.
  public init(interval: Duration) {
    self.interval = interval
  }

  /// Makes the next frame a key frame.
  public mutating func request() {
    isRequested = true
  }

  /// Returns `true` if the frame of `timestamp` must be a key frame.
  ///
  /// The tolerance is half a frame either way, because camera clocks jitter: 60 frames at 30 fps must be one interval
  /// of 2 s, neither 59 nor 61.
  public func isDue(at timestamp: Instant, frameInterval: Duration) -> Bool {
    guard !isRequested, let last else { return true }
    let slack = Duration(nanoseconds: frameInterval.nanoseconds / 2)
    return timestamp - last + slack >= interval
  }

  /// Records that the frame of `timestamp` became a key frame.
  public mutating func keyFrameDelivered(at timestamp: Instant) {
    last = timestamp
    isRequested = false
  }
}

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
