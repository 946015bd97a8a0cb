/// A coded picture put together again from its packets, its bytes lent for the length of the call.
public struct ReceivedAccessUnit: ~Copyable {
  /// The NAL units as a byte stream of H.264 Annex B, a four-byte start code before each; empty where all were lost.
  public let annexB: UnsafeRawBufferPointer
  /// The RTP timestamp of its packets.
  public let timestamp: UInt32
  /// Whether part of it is missing, or may be: a packet was lost next to it, or one of its packets was refused.
  public let isDamaged: Bool
  private let ranges: UnsafeBufferPointer<Range<Int>>

  init(
    annexB: UnsafeRawBufferPointer, ranges: UnsafeBufferPointer<Range<Int>>, timestamp: UInt32, isDamaged: Bool
  ) {
    self.annexB = annexB
    self.ranges = ranges
    self.timestamp = timestamp
    self.isDamaged = isDamaged
  }

  /// How many NAL units it has; at most ``H264Depacketizer/Limits/nalUnits``.
  public var count: Int { ranges.count }

  /// NAL unit number `index`, from 0: header byte first, no start code, never empty.
  public subscript(index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: annexB[ranges[index]])
  }

  /// Whether it has a slice of an IDR picture.
  public var isKeyFrame: Bool {
    for range in ranges where annexB[range.lowerBound] & 0x1f == 5 { return true }
    return false
  }
}
