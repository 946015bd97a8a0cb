import CVA
import Media

/// The coded buffer: its segments as NAL units in lent memory.
final class CodedBuffer {
  /// The maximum number of segments that a driver may split a picture into.
  private static let segmentLimit = 4096

  private let context: VAEncodingContext
  private let codec: VideoCodec
  /// The places before the NAL units, for the parameter sets: SPS and PPS of H.264; VPS, SPS and PPS of HEVC.
  private let setPlaces: Int
  private let units: UnsafeMutablePointer<NALUnit>
  private var count: Int
  /// The memory for pictures in several segments; untouched pages cost nothing.
  private let joined: UnsafeMutableRawPointer
  private var syncsBuffers = true
  private var isMapped = false

  // The parameter sets in this picture.
  private var video: UnsafeRawBufferPointer?
  private var sequence: UnsafeRawBufferPointer?
  private var picture: UnsafeRawBufferPointer?
  /// The number of bytes in all segments.
  private(set) var byteCount = 0
  /// `true` if the coded buffer was too small; the picture is then damaged.
  private(set) var hasOverflown = false

  init(_ context: VAEncodingContext, _ codec: VideoCodec) {
    self.context = context
    self.codec = codec
    setPlaces = codec.hasVideoParameterSet ? 3 : 2
    count = setPlaces
    units = .allocate(capacity: AccessUnit.nalUnitLimit)
    joined = .allocate(byteCount: context.codedCapacity, alignment: 64)
  }

  deinit {
    release()
    units.deallocate()
    joined.deallocate()
  }

  /// The picture's NAL units without parameter sets, delimiters and filler data. The encoder sends its own.
  var nalUnits: UnsafeBufferPointer<NALUnit> {
    UnsafeBufferPointer(start: units + setPlaces, count: count - setPlaces)
  }

  /// Returns the picture's NAL units after those of `sets`.
  func nalUnits(after sets: SetUnits) -> UnsafeBufferPointer<NALUnit> {
    for index in 0..<min(setPlaces, sets.units.count) { (units + index).initialize(to: sets.units[index]) }
    return UnsafeBufferPointer(start: units, count: count)
  }

  /// The parameter sets in this picture; nil if one of them is missing, or is none.
  var parameterSets: ParameterSets? {
    func bytes(_ set: UnsafeRawBufferPointer?) -> [UInt8] { set.map { Array($0) } ?? [] }
    return ParameterSets(codec, video: bytes(video), sequence: bytes(sequence), picture: bytes(picture))
  }

  /// Returns `true` if each parameter set in this picture is one of `sets`; also if there is none.
  func has(_ sets: ParameterSets) -> Bool {
    func isSame(_ bytes: UnsafeRawBufferPointer?, _ set: [UInt8]) -> Bool { bytes?.elementsEqual(set) ?? true }
    return isSame(video, sets.video) && isSame(sequence, sets.sequence) && isSame(picture, sets.picture)
  }

  /// Waits for the picture on `surface` and maps it until ``release()``.
  ///
  /// - Throws: ``EncoderError``. Nothing is mapped in that case.
  func read(_ surface: VASurfaceID) throws(EncoderError) {
    try synchronize(surface)
    var address: UnsafeMutableRawPointer?
    try check(vaMapBuffer(context.display.handle, context.codedBuffer, &address), "vaMapBuffer")
    isMapped = true
    do throws(EncoderError) {
      guard let first = address?.assumingMemoryBound(to: VACodedBufferSegment.self) else {
        throw .output(library: "VA-API", "a coded buffer without segments")
      }
      let stream = try gather(first)
      byteCount = stream.count
      if !hasOverflown { try split(stream) }
    } catch {
      release()
      throw error
    }
  }

  /// Unmaps the buffer. Repeated calls have no effect.
  func release() {
    guard isMapped else { return }
    isMapped = false
    (video, sequence, picture) = (nil, nil, nil)
    vaUnmapBuffer(context.display.handle, context.codedBuffer)
  }

  /// Throws an error if the picture is not as requested. After a GPU failure a driver may return any bytes without an
  /// error.
  ///
  /// - Throws: ``EncoderError/output(library:_:)``.
  func checkSlices(isIDR: Bool) throws(EncoderError) {
    var slices = 0
    for unit in nalUnits {
      let role = codec.role(of: unit)
      guard role == .keyFrameSlice || role == .slice else { continue }
      guard (role == .keyFrameSlice) == isIDR else {
        let type = codec == .hevc ? HEVCNALUnitHeader(unit)?.type.rawValue ?? 0 : unit.type.rawValue
        throw .output(library: "VA-API", "a NAL unit of type \(type) in \(isIDR ? "an IDR" : "a P") picture")
      }
      // first_mb_in_slice is ue(v): a leading one bit means zero. first_slice_segment_in_pic_flag of HEVC is one bit.
      let header = codec == .hevc ? HEVCNALUnitHeader.byteCount : 1
      guard slices > 0 || (unit.bytes.count > header && unit.bytes[header] & 0x80 != 0) else {
        throw .output(library: "VA-API", "a picture without its first macroblock")
      }
      slices += 1
    }
    guard slices > 0 else { throw .output(library: "VA-API", "\(byteCount) bytes without a slice") }
  }

  private func synchronize(_ surface: VASurfaceID) throws(EncoderError) {
    if syncsBuffers {
      let status = nightjar_va_sync_buffer(context.display.handle, context.codedBuffer)
      guard status == VA_STATUS_ERROR_UNIMPLEMENTED else { return try check(status, "vaSyncBuffer") }
      syncsBuffers = false
    }
    try check(vaSyncSurface(context.display.handle, surface), "vaSyncSurface")
  }

  /// Returns the segments as one stream. A single segment stays in the driver's memory. Several are joined in
  /// ``joined``, since a NAL unit may span segments.
  private func gather(
    _ first: UnsafeMutablePointer<VACodedBufferSegment>
  ) throws(EncoderError) -> UnsafeRawBufferPointer {
    hasOverflown = false
    var segment: UnsafeMutablePointer<VACodedBufferSegment>? = first
    var length = 0
    var segments = 0
    while let current = segment {
      segments += 1
      let size = Int(current.pointee.size)
      guard segments <= Self.segmentLimit, size <= context.codedCapacity - length else {
        throw .output(
          library: "VA-API", "\(segments) segments with more than the coded buffer's \(context.codedCapacity) bytes")
      }
      guard current.pointee.status & UInt32(VA_CODED_BUF_STATUS_BAD_BITSTREAM) == 0 else {
        throw .output(library: "VA-API", "the driver marks the picture as bad (status \(current.pointee.status))")
      }
      if current.pointee.status & UInt32(VA_CODED_BUF_STATUS_SLICE_OVERFLOW_MASK) != 0 { hasOverflown = true }
      let next = current.pointee.next?.assumingMemoryBound(to: VACodedBufferSegment.self)
      if size > 0 {
        guard let bytes = current.pointee.buf else {
          throw .output(library: "VA-API", "a segment of \(size) bytes without memory")
        }
        if segments == 1, next == nil { return UnsafeRawBufferPointer(start: bytes, count: size) }
        (joined + length).copyMemory(from: bytes, byteCount: size)
      }
      length += size
      segment = next
    }
    return UnsafeRawBufferPointer(start: joined, count: length)
  }

  /// Splits the stream into NAL units.
  private func split(_ stream: UnsafeRawBufferPointer) throws(EncoderError) {
    count = setPlaces
    (video, sequence, picture) = (nil, nil, nil)
    try AnnexB.forEachNALUnit(in: stream) { (unit) throws(EncoderError) in
      switch codec.role(of: unit) {
      case .parameterSet(.video): video = unit.bytes
      case .parameterSet(.sequence): sequence = unit.bytes
      case .parameterSet(.picture): picture = unit.bytes
      case .accessUnitDelimiter: break
      default:
        guard !isFiller(unit) else { return }
        guard count < AccessUnit.nalUnitLimit else {
          throw .output(library: "VA-API", "more than \(AccessUnit.nalUnitLimit - setPlaces) NAL units in a picture")
        }
        (units + count).initialize(to: unit)
        count += 1
      }
    }
  }

  /// Returns `true` for filler data, which carry no picture.
  private func isFiller(_ unit: NALUnit) -> Bool {
    switch codec {
    case .h264: unit.type == NALUnitType(rawValue: 12)
    case .hevc: HEVCNALUnitHeader(unit)?.type == .fillerData
    }
  }
}
