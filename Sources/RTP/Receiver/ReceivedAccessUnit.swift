/// A coded picture reassembled from its packets, its bytes lent for the duration of the call.
public struct ReceivedAccessUnit: ~Copyable {
  /// The NAL units as an H.264 Annex B byte stream with a four-byte start code before each; empty if all were lost.
  public let annexB: UnsafeRawBufferPointer
  /// The RTP timestamp of the packets.
  public let timestamp: UInt32
  /// `true` if a part may be missing: a neighboring packet was lost, or one of its packets was refused.
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

  /// The number of NAL units, at most ``H264Depacketizer/Limits/nalUnits``.
  public var count: Int { ranges.count }

  /// Returns NAL unit number `index`, counted from 0: header byte first, no start code, never empty.
  public subscript(index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: annexB[ranges[index]])
  }

  /// `true` if the access unit has a slice of an IDR picture.
  public var isKeyFrame: Bool {
    for range in ranges where annexB[range.lowerBound] & 0x1f == 5 { return true }
    return false
  }
}
