import Media

extension StagedVideoEncoder {
  /// Encodes the loaded frame, which must give one picture, and lends that to `deliver`. Returns `false` if the frame
  /// must be loaded again, because the driver did not read it in place or did not rotate it.
  ///
  /// - Throws: ``EncoderError``. ``EncoderError/output(library:_:)``, with the name `library`, for no picture or
  ///   several.
  func encodeOne(
    keyFrame: Bool, library: String, deliver: (borrowing AccessUnit) -> Void
  ) throws(EncoderError) -> Bool {
    var deliveries = 0
    do throws(EncoderError) {
      try encodeLoaded(keyFrame: keyFrame) { unit in
        deliveries += 1
        // The caller expects one picture only.
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
