import Media

extension StagedVideoEncoder {
  /// Encodes what was loaded, which is to come to one picture, and lends that to `deliver`; false where the frame is to be
  /// loaded once more, because the driver did not read it where it was, or did not turn it.
  ///
  /// - Throws: ``EncoderError``; ``EncoderError/output(library:_:)``, by the name of `library`, for none or several.
  func encodeOne(
    keyFrame: Bool, library: String, deliver: (borrowing AccessUnit) -> Void
  ) throws(EncoderError) -> Bool {
    var deliveries = 0
    do throws(EncoderError) {
      try encodeLoaded(keyFrame: keyFrame) { unit in
        deliveries += 1
        // Nobody waits for a second one.
        if deliveries == 1 { deliver(unit) }
      }
    } catch {
      switch error {
      case .importRefused, .notTurned: return false
      default: throw error
      }
    }
    guard deliveries == 1 else { throw .output(library: library, "\(deliveries) pictures for a frame") }
    return true
  }
}
