import Media

/// A coded picture reassembled from its packets, or a packet of sound, its bytes lent for the duration of the call.
public struct ReceivedAccessUnit: ~Copyable {
  /// The NAL units as an Annex B byte stream with a four-byte start code before each; empty if all were lost. Of sound,
  /// the Opus packet as it is.
  public let annexB: UnsafeRawBufferPointer
  /// The RTP timestamp of the packets.
  public let timestamp: UInt32
  /// `true` if a part may be missing, or a picture before it that it refers to: a neighboring packet was lost, or one of its packets was
  /// refused. A key frame behind a gap is whole if it begins with its parameter sets, unless it is a CRA picture. A packet of sound is
  /// always whole.
  public internal(set) var isDamaged: Bool
  private let ranges: UnsafeBufferPointer<Range<Int>>
  /// The codec of the picture; nil for sound.
  private let codec: VideoCodec?

  init(
    annexB: UnsafeRawBufferPointer, ranges: UnsafeBufferPointer<Range<Int>>, codec: VideoCodec, timestamp: UInt32,
    isDamaged: Bool
  ) {
    self.annexB = annexB
    self.ranges = ranges
    self.timestamp = timestamp
    self.isDamaged = isDamaged
    self.codec = codec
  }

  /// Creates a unit of a packet of sound, which is the one range.
  init(sound packet: UnsafeRawBufferPointer, ranges: UnsafeBufferPointer<Range<Int>>, timestamp: UInt32) {
    annexB = packet
    self.ranges = ranges
    self.timestamp = timestamp
    isDamaged = false
    codec = nil
  }

  /// The number of NAL units, at most ``AccessUnitLimits/nalUnits``; 1 of sound.
  public var count: Int { ranges.count }

  /// Returns NAL unit number `index`, counted from 0: header first, no start code, never empty. Of sound, the Opus packet.
  public subscript(index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: annexB[ranges[index]])
  }

  /// `true` if a decoder can start here: the access unit has a slice of an IDR picture (H.264) or an IRAP picture
  /// (HEVC), or it is sound.
  public var isKeyFrame: Bool {
    guard let codec else { return true }
    for range in ranges {
      if let unit = NALUnit(UnsafeRawBufferPointer(rebasing: annexB[range])), codec.isKeyFrame(unit) { return true }
    }
    return false
  }

  /// `true` if the access unit is a key frame of which nothing that a decoder needs comes before the first NAL unit: that is a
  /// delimiter, or the parameter set that the others refer to. Neither can follow a slice (clause 7.4.1.2.3 of H.264, 7.4.2.4.4 of
  /// HEVC). `false` for a CRA picture: pictures behind it may refer to one in the gap (clause 8.1.3 of HEVC).
  var isWholeKeyFrame: Bool {
    guard let codec, isKeyFrame, !isCRA, let first = NALUnit(self[0]) else { return false }
    return switch codec.role(of: first) {
    case .accessUnitDelimiter: true
    case .parameterSet(let kind): kind == (codec.hasVideoParameterSet ? .video : .sequence)
    case .slice, .keyFrameSlice, .other: false
    }
  }

  private var isCRA: Bool {
    guard codec == .hevc else { return false }
    return ranges.contains { range in
      NALUnit(UnsafeRawBufferPointer(rebasing: annexB[range])).flatMap(HEVCNALUnitHeader.init)?.type == .cra
    }
  }
}
