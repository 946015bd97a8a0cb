/// A coded picture reassembled from its packets, or a packet of sound, its bytes lent for the duration of the call.
public struct ReceivedAccessUnit: ~Copyable {
  /// The NAL units as an H.264 Annex B byte stream with a four-byte start code before each; empty if all were lost. Of sound,
  /// the Opus packet as it is.
  public let annexB: UnsafeRawBufferPointer
  /// The RTP timestamp of the packets.
  public let timestamp: UInt32
  /// `true` if a part may be missing: a neighboring packet was lost, or one of its packets was refused. A packet of sound is
  /// always whole.
  public let isDamaged: Bool
  private let ranges: UnsafeBufferPointer<Range<Int>>
  private let isSound: Bool

  init(
    annexB: UnsafeRawBufferPointer, ranges: UnsafeBufferPointer<Range<Int>>, timestamp: UInt32, isDamaged: Bool
  ) {
    self.annexB = annexB
    self.ranges = ranges
    self.timestamp = timestamp
    self.isDamaged = isDamaged
    isSound = false
  }

  /// Creates a unit of a packet of sound, which is the one range.
  init(sound packet: UnsafeRawBufferPointer, ranges: UnsafeBufferPointer<Range<Int>>, timestamp: UInt32) {
    annexB = packet
    self.ranges = ranges
    self.timestamp = timestamp
    isDamaged = false
    isSound = true
  }

  /// The number of NAL units, at most ``H264Depacketizer/Limits/nalUnits``; 1 of sound.
  public var count: Int { ranges.count }

  /// Returns NAL unit number `index`, counted from 0: header byte first, no start code, never empty. Of sound, the Opus packet.
  public subscript(index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: annexB[ranges[index]])
  }

  /// `true` if a decoder can start here: the access unit has a slice of an IDR picture, or it is sound.
  public var isKeyFrame: Bool {
    if isSound { return true }
    for range in ranges where annexB[range.lowerBound] & 0x1f == 5 { return true }
    return false
  }
}
