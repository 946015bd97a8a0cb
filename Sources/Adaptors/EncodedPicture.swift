public import Media
public import Platform

/// A coded picture that owns its bytes: an access unit that tasks and threads may keep and pass on.
public struct EncodedPicture: Hashable, Sendable {
  /// The codec of the picture.
  public let codec: VideoCodec
  /// The access unit as a byte stream (Annex B of ITU-T H.264 or H.265). Each NAL unit has a start code of four bytes.
  public let annexB: [UInt8]
  /// The picture's time on the stream's timeline.
  public let timestamp: Instant
  /// The time at which the whole picture was available, on `CLOCK_MONOTONIC`.
  public let captured: Instant
  /// `true` if the access unit has a slice of an IDR picture (H.264) or an IRAP picture (HEVC), at which a decoder can start.
  public let isKeyFrame: Bool
  /// `true` if a part of the access unit may be missing, or a picture to which it refers.
  public let isDamaged: Bool
  /// The picture's number in its source's sequence; nil where the source does not count. A number that does not follow the
  /// former picture's tells of a discontinuity: pictures between were lost, such as to a slow subscriber, or the source has
  /// begun anew. A decoder then waits for the next picture at which it can start.
  public let number: UInt64?

  /// Creates a picture of a byte stream with one access unit. `isKeyFrame` follows from its NAL units.
  public init(
    annexB: [UInt8], codec: VideoCodec = .h264, timestamp: Instant, captured: Instant = .now(), isDamaged: Bool = false,
    number: UInt64? = nil
  ) {
    var isKeyFrame = false
    annexB.withUnsafeBytes { bytes in
      AnnexB.forEachNALUnit(in: bytes) { if codec.isKeyFrame($0) { isKeyFrame = true } }
    }
    self.init(
      annexB: annexB, codec: codec, timestamp: timestamp, captured: captured, isKeyFrame: isKeyFrame,
      isDamaged: isDamaged, number: number)
  }

  init(
    annexB: [UInt8], codec: VideoCodec, timestamp: Instant, captured: Instant, isKeyFrame: Bool, isDamaged: Bool,
    number: UInt64? = nil
  ) {
    self.codec = codec
    self.annexB = annexB
    self.timestamp = timestamp
    self.captured = captured
    self.isKeyFrame = isKeyFrame
    self.isDamaged = isDamaged
    self.number = number
  }

  /// Copies an access unit of `codec` that an encoder lends. A part of a picture (``/Media/AccessUnit/isWhole``) becomes a picture
  /// of these slices only.
  public init(_ unit: borrowing AccessUnit, codec: VideoCodec = .h264) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(AVCC.byteCount(of: unit))
    for nalUnit in unit.nalUnits {
      bytes += AnnexB.startCode
      bytes += nalUnit.bytes
    }
    self.init(
      annexB: bytes, codec: codec, timestamp: unit.timestamp, captured: unit.captured, isKeyFrame: unit.isKeyFrame,
      isDamaged: false)
  }

  /// Creates a picture of length-prefixed NAL units, as MP4 files and hardware interfaces have them.
  ///
  /// - Throws: ``/Media/NALUnitFormatError`` for lengths that do not fit the bytes.
  public init(
    avcc bytes: UnsafeRawBufferPointer, lengthSize: Int = AVCC.lengthSize, limit: Int = AVCC.accessUnitLimit,
    codec: VideoCodec = .h264, timestamp: Instant, captured: Instant = .now(), number: UInt64? = nil
  ) throws(NALUnitFormatError) {
    let stream = try AnnexB.bytes(fromAVCC: bytes, lengthSize: lengthSize, limit: limit)
    self.init(annexB: stream, codec: codec, timestamp: timestamp, captured: captured, number: number)
  }

  /// The access unit with length-prefixed NAL units, each length of four bytes.
  ///
  /// - Throws: ``/Media/NALUnitFormatError/tooLong(_:limit:)``.
  public var avcc: [UInt8] {
    get throws(NALUnitFormatError) {
      try annexB.span.bytes.withUnsafeBytes { bytes throws(NALUnitFormatError) in try AVCC.bytes(fromAnnexB: bytes) }
    }
  }

  /// `true` if a decoder can start here: at a key frame, or at a recovery point of H.264 (clause D.2.8). After a recovery
  /// point, the pictures up to the one that it names are not shown.
  public var isEntry: Bool {
    guard !isKeyFrame, codec == .h264 else { return isKeyFrame }
    var hasRecoveryPoint = false
    annexB.withUnsafeBytes { bytes in
      AnnexB.forEachNALUnit(in: bytes) { if RecoveryPoint($0) != nil { hasRecoveryPoint = true } }
    }
    return hasRecoveryPoint
  }

  /// The first parameter sets of the access unit, one of each kind; nil where one is missing.
  public var parameterSets: ParameterSets? {
    annexB.withUnsafeBytes { ParameterSets(codec, firstIn: $0) }
  }
}
