extension StreamDecoding {
  /// The most pictures that a session may hold back.
  static let heldLimit = 64
  /// The number of key frames in a row that a driver may fail to decode.
  static let failedKeyFrameLimit = 2
  static let sliceReason = "pictures have several slices, and no driver tells that one is missing"
  static let recoveryReason = "the stream was entered without a key frame"

  /// Returns the error for a fault of software.
  static func error(of fault: CodecSession.Fault) -> DecoderError {
    fault.isOfMemory ? .memory : .damaged(fault.reason)
  }
}
