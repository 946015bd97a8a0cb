public import Platform

/// A coded picture of the track's codec, or a part of one. The owner of the bytes lends the NAL units for the length of one
/// call.
///
/// Parts come from an encoder that delivers slices one by one (``EncoderConfiguration/streamsSlices``). Each part has
/// whole slices, in order, and the same times.
public struct AccessUnit: ~Copyable {
  /// The limit of NAL units in one access unit: slices, parameter sets, SEI.
  public static let nalUnitLimit = 1024

  /// The NAL units in decoding order. A key frame begins with the parameter sets.
  public let nalUnits: UnsafeBufferPointer<NALUnit>
  /// `true` for a picture at which a decoder can start: IDR in H.264, IRAP in HEVC.
  public let isKeyFrame: Bool
  /// The picture's capture time, on the stream's timeline.
  public let timestamp: Instant
  /// The time at which the picture became available, on `CLOCK_MONOTONIC`.
  public let captured: Instant
  /// `true` if the picture begins with this part.
  public let isFirstPart: Bool
  /// `true` if the picture ends with this part. Where an encoder fails in mid-picture, the last part never comes.
  public let isLastPart: Bool

  /// `true` for a whole picture.
  public var isWhole: Bool { isFirstPart && isLastPart }

  /// Creates an access unit of NAL units that the caller keeps while this value is used.
  public init(
    nalUnits: UnsafeBufferPointer<NALUnit>, isKeyFrame: Bool, timestamp: Instant, captured: Instant,
    isFirstPart: Bool = true, isLastPart: Bool = true
  ) {
    self.nalUnits = nalUnits
    self.isKeyFrame = isKeyFrame
    self.timestamp = timestamp
    self.captured = captured
    self.isFirstPart = isFirstPart
    self.isLastPart = isLastPart
  }

  /// The total size of the NAL units in bytes, without start codes.
  public var payloadBytes: Int {
    var sum = 0
    for unit in nalUnits { sum += unit.bytes.count }
    return sum
  }
}
