import Media

/// Keeps `idr_pic_id` of two IDR pictures in a row apart, as ITU-T H.264 clause 7.4.3 wants it, where they come from two
/// encoders, each of which counts for itself: a turn, or a fail-over, in the very frame after a key frame.
struct IDRSuccession {
  /// That of the last picture; nil where it was no IDR.
  private var last: Int?
  /// Whether the picture was handed on whose parts come.
  private var isPassing = true

  /// None yet.
  init() {}

  /// Hands `unit` on to `deliver`; or where it is a new encoder's first picture and repeats the id of the one before,
  /// keeps it back and says false: encoded once more as a key frame it has another. A picture's first part decides for
  /// the others.
  mutating func pass(
    _ unit: borrowing AccessUnit, ofNewEncoder isFirst: Bool, to deliver: (borrowing AccessUnit) -> Void
  ) -> Bool {
    guard unit.isFirstPart else {
      if isPassing { deliver(unit) }
      return isPassing
    }
    let identifier = unit.isKeyFrame ? unit.idrPictureID : nil
    if isFirst, let identifier, identifier == last {
      isPassing = false
      return false
    }
    isPassing = true
    last = identifier
    deliver(unit)
    return true
  }
}
