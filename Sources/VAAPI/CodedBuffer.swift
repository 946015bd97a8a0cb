import CVA
import Media

/// The coded buffer: its segments as NAL units in lent memory.
final class CodedBuffer {
  /// The maximum number of segments that a driver may split a picture into.
  private static let segmentLimit = 4096

  private let context: VAEncodingContext
  /// The NAL units. The first two places are for the parameter sets.
  private let units: UnsafeMutablePointer<NALUnit>
  private var count = 2
  /// The memory for pictures in several segments; untouched pages cost nothing.
  private let joined: UnsafeMutableRawPointer
  private var syncsBuffers = true
  private var isMapped = false

  /// The driver's own parameter sets in this picture.
  private(set) var sequence: UnsafeRawBufferPointer?
  private(set) var picture: UnsafeRawBufferPointer?
  /// The number of bytes in all segments.
  private(set) var byteCount = 0
  /// `true` if the coded buffer was too small; the picture is then damaged.
  private(set) var hasOverflown = false

  init(_ context: VAEncodingContext) {
    self.context = context
    units = .allocate(capacity: AccessUnit.nalUnitLimit)
    joined = .allocate(byteCount: context.codedCapacity, alignment: 64)
  }

  deinit {
    release()
    units.deallocate()
    joined.deallocate()
  }

  /// The picture's NAL units without parameter sets, delimiters and filler data. The encoder sends its own.
  var nalUnits: UnsafeBufferPointer<NALUnit> { UnsafeBufferPointer(start: units + 2, count: count - 2) }

  /// Returns the picture's NAL units after `sequence` and `picture`.
  func nalUnits(after sequence: NALUnit, _ picture: NALUnit) -> UnsafeBufferPointer<NALUnit> {
    (units + 0).initialize(to: sequence)
    (units + 1).initialize(to: picture)
    return UnsafeBufferPointer(start: units, count: count)
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
    (sequence, picture) = (nil, nil)
    vaUnmapBuffer(context.display.handle, context.codedBuffer)
  }

  /// Throws an error if the picture is not as requested. After a GPU failure a driver may return any bytes without an
  /// error.
  ///
  /// - Throws: ``EncoderError/output(library:_:)``.
  func checkSlices(isIDR: Bool) throws(EncoderError) {
    var slices = 0
    for unit in nalUnits where unit.type == .idrSlice || unit.type == .nonIDRSlice {
      guard (unit.type == .idrSlice) == isIDR else {
        throw .output(
          library: "VA-API", "a NAL unit of type \(unit.type.rawValue) in \(isIDR ? "an IDR" : "a P") picture")
      }
      // first_mb_in_slice is ue(v): a leading one bit means zero.
      guard slices > 0 || (unit.bytes.count > 1 && unit.bytes[1] & 0x80 != 0) else {
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
    count = 2
    (sequence, picture) = (nil, nil)
    try AnnexB.forEachNALUnit(in: stream) { (unit) throws(EncoderError) in
      switch unit.type {
      case .sequenceParameterSet: sequence = unit.bytes
      case .pictureParameterSet: picture = unit.bytes
      case .accessUnitDelimiter, NALUnitType(rawValue: 12): break  // Filler data carries no picture.
      default:
        guard count < AccessUnit.nalUnitLimit else {
          throw .output(library: "VA-API", "more than \(AccessUnit.nalUnitLimit - 2) NAL units in a picture")
        }
        (units + count).initialize(to: unit)
        count += 1
      }
    }
  }
}
