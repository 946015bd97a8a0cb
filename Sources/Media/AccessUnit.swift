/// One coded picture: its NAL units lent by whoever holds the bytes, valid for the length of the call
/// that received it.
public struct AccessUnit: ~Copyable {
  /// The NAL units in decoding order. On a key frame the SPS and PPS come first.
  public let nalUnits: UnsafeBufferPointer<NALUnit>
  /// Whether it is an IDR picture, from which a decoder can start.
  public let isKeyFrame: Bool
  /// When the picture was taken, on the stream's timeline.
  public let timestamp: MediaTime
  /// When the picture became available, on `CLOCK_MONOTONIC`.
  public let captured: MediaTime

  /// An access unit of NAL units that the caller keeps while this value is used.
  public init(
    nalUnits: UnsafeBufferPointer<NALUnit>, isKeyFrame: Bool, timestamp: MediaTime, captured: MediaTime
  ) {
    self.nalUnits = nalUnits
    self.isKeyFrame = isKeyFrame
    self.timestamp = timestamp
    self.captured = captured
  }

  /// The sum of the NAL units' bytes, without start codes.
  public var payloadBytes: Int {
    var sum = 0
    for unit in nalUnits { sum += unit.bytes.count }
    return sum
  }
}
