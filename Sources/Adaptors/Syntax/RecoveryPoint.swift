package import Media

/// A recovery point (ITU-T H.264 clause D.2.8): a picture at which a decoder can start without a key frame. An intra refresh
/// and an open group of pictures have such ones.
package struct RecoveryPoint: Hashable, Sendable {
  /// `recovery_frame_cnt`: the number of frames after this one up to the first reference picture that is right. What is shown
  /// before that picture is not.
  package let frames: Int

  /// The number of bytes in which the message is looked for: SEI has no limit.
  private static let lengthLimit = 4096

  /// Reads the message from a NAL unit of SEI; nil where the unit has none, or where it cannot be read.
  package init?(_ unit: NALUnit) {
    guard unit.type == .supplementalEnhancementInformation else { return nil }
    var reader = HeaderBits(unit)
    var rest = min(unit.bytes.count, Self.lengthLimit)
    func number() -> Int? {
      var value = 0
      while rest > 0, let byte = reader.bits(8) {
        rest -= 1
        value += byte
        if byte != 255 { return value }
      }
      return nil
    }
    // The last byte ends the payload.
    while rest > 2, let type = number(), let size = number(), size <= rest {
      if type == Self.type {
        guard size > 0, let frames = reader.unsigned(), frames < 1 << 16 else { return nil }
        self.frames = frames
        return
      }
      for _ in 0..<size { guard reader.bits(8) != nil else { return nil } }
      rest -= size
    }
    return nil
  }

  /// `payloadType` of a recovery point.
  private static let type = 6
}
