/// One coded picture, or a part of one: its NAL units lent by whoever holds the bytes, valid for the length of the call
/// that received it.
///
/// Parts come from an encoder that was told to let slices go one by one (``EncoderConfiguration/streamsSlices``): each has
/// whole slices, in order, and the same times.
public struct AccessUnit: ~Copyable {
  /// The NAL units in decoding order. A key frame begins with the SPS and PPS.
  public let nalUnits: UnsafeBufferPointer<NALUnit>
  /// Whether it is an IDR picture, from which a decoder can start.
  public let isKeyFrame: Bool
  /// When the picture was taken, on the stream's timeline.
  public let timestamp: MediaTime
  /// When the picture became available, on `CLOCK_MONOTONIC`.
  public let captured: MediaTime
  /// Whether the picture begins with it.
  public let isFirstPart: Bool
  /// Whether the picture ends with it. Where an encoder fails in the middle of a picture, that part never comes.
  public let isLastPart: Bool

  /// Whether it is a picture, and not a part of one.
  public var isWhole: Bool { isFirstPart && isLastPart }

  /// An access unit of NAL units that the caller keeps while this value is used.
  public init(
    nalUnits: UnsafeBufferPointer<NALUnit>, isKeyFrame: Bool, timestamp: MediaTime, captured: MediaTime,
    isFirstPart: Bool = true, isLastPart: Bool = true
  ) {
    self.nalUnits = nalUnits
    self.isKeyFrame = isKeyFrame
    self.timestamp = timestamp
    self.captured = captured
    self.isFirstPart = isFirstPart
    self.isLastPart = isLastPart
  }

  /// The sum of the NAL units' bytes, without start codes.
  public var payloadBytes: Int {
    var sum = 0
    for unit in nalUnits { sum += unit.bytes.count }
    return sum
  }
}
