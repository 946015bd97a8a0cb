public import Platform

/// NAL units with a big-endian length prefix, as in MP4 and hardware interfaces (ISO/IEC 14496-15 clause 5.3.4.2).
/// Writing uses lengths of four bytes; reading accepts one, two or four.
public enum AVCC {
  /// The size of a length that this type writes, in bytes.
  public static let lengthSize = 4
  /// The default size limit of an access unit, in bytes; 4K pictures stay under 4 MB.
  public static let accessUnitLimit = 64 << 20

  /// Calls `body` with each NAL unit of `stream`, whose lengths have `lengthSize` bytes.
  ///
  /// - Throws: ``NALUnitFormatError`` for a length of zero or one that exceeds `stream`; `body` has received the units
  ///   before.
  public static func forEachNALUnit(
    in stream: UnsafeRawBufferPointer, lengthSize: Int = AVCC.lengthSize, _ body: (NALUnit) -> Void
  ) throws(NALUnitFormatError) {
    guard [1, 2, 4].contains(lengthSize) else { throw .lengthSize(lengthSize) }
    var position = 0
    while position < stream.count {
      guard stream.count - position >= lengthSize else {
        throw .truncated(expected: lengthSize, found: stream.count - position)
      }
      var length = 0
      for _ in 0..<lengthSize {
        length = length << 8 | Int(stream[position])
        position += 1
      }
      guard length <= stream.count - position else {
        throw .truncated(expected: length, found: stream.count - position)
      }
      guard let unit = NALUnit(UnsafeRawBufferPointer(rebasing: stream[position..<position + length])) else {
        throw .empty
      }
      body(unit)
      position += length
    }
  }

  /// Returns the size of `unit` in this format, in bytes.
  public static func byteCount(of unit: borrowing AccessUnit) -> Int {
    unit.payloadBytes + unit.nalUnits.count * lengthSize
  }

  /// Writes `unit` into `memory` and returns the number of bytes written. Allocates nothing.
  ///
  /// - Throws: ``NALUnitFormatError/room(needed:available:)`` where it does not fit; then nothing was written.
  public static func write(
    _ unit: borrowing AccessUnit, into memory: UnsafeMutableRawBufferPointer
  ) throws(NALUnitFormatError) -> Int {
    let needed = byteCount(of: unit)
    guard needed <= memory.count else { throw .room(needed: needed, available: memory.count) }
    var position = 0
    for nalUnit in unit.nalUnits { position = append(nalUnit, to: memory, at: position) }
    return position
  }

  /// Converts a byte stream (Annex B) into this format.
  ///
  /// - Throws: ``NALUnitFormatError/tooLong(_:limit:)``, before any allocation.
  public static func bytes(
    fromAnnexB stream: UnsafeRawBufferPointer, limit: Int = AVCC.accessUnitLimit
  ) throws(NALUnitFormatError) -> [UInt8] {
    var needed = 0
    AnnexB.forEachNALUnit(in: stream) { needed += lengthSize + $0.bytes.count }
    guard needed <= limit else { throw .tooLong(needed, limit: limit) }
    return [UInt8](unsafeUninitializedCapacity: needed) { memory, count in
      AnnexB.forEachNALUnit(in: stream) { count = append($0, to: UnsafeMutableRawBufferPointer(memory), at: count) }
    }
  }

  /// Writes one NAL unit at `position` and returns its end. The caller has checked that it fits.
  private static func append(_ unit: NALUnit, to memory: UnsafeMutableRawBufferPointer, at position: Int) -> Int {
    memory.storeBytes(of: UInt32(unit.bytes.count).bigEndian, toByteOffset: position, as: UInt32.self)
    let end = position + lengthSize + unit.bytes.count
    UnsafeMutableRawBufferPointer(rebasing: memory[position + lengthSize..<end]).copyMemory(from: unit.bytes)
    return end
  }
}

extension AnnexB {
  /// Converts length-prefixed NAL units (``AVCC``) into a byte stream, each with a start code of four bytes.
  ///
  /// - Throws: ``NALUnitFormatError``; `tooLong` before any allocation.
  public static func bytes(
    fromAVCC stream: UnsafeRawBufferPointer, lengthSize: Int = AVCC.lengthSize, limit: Int = AVCC.accessUnitLimit
  ) throws(NALUnitFormatError) -> [UInt8] {
    var needed = 0
    try AVCC.forEachNALUnit(in: stream, lengthSize: lengthSize) { needed += startCode.count + $0.bytes.count }
    guard needed <= limit else { throw .tooLong(needed, limit: limit) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(needed)
    try AVCC.forEachNALUnit(in: stream, lengthSize: lengthSize) { unit in
      bytes.append(contentsOf: startCode)
      bytes.append(contentsOf: unit.bytes)
    }
    return bytes
  }
}

/// An error from converting NAL units between formats.
public enum NALUnitFormatError: Failure {
  /// A length exceeds the data.
  case truncated(expected: Int, found: Int)
  /// A length is zero.
  case empty
  /// A length does not have one, two or four bytes.
  case lengthSize(Int)
  /// The data exceed the size limit.
  case tooLong(Int, limit: Int)
  /// The given memory is too small.
  case room(needed: Int, available: Int)

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .truncated(let expected, let found): "a NAL unit of \(expected) bytes where \(found) are left"
    case .empty: "a NAL unit without a byte"
    case .lengthSize(let size): "NAL unit lengths of \(size) bytes: 1, 2 or 4 are possible"
    case .tooLong(let count, let limit): "\(count) bytes of NAL units, at most \(limit) are taken"
    case .room(let needed, let available): "\(needed) bytes of NAL units for a memory of \(available)"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind {
    switch self {
    case .truncated, .empty, .lengthSize, .tooLong: .data
    case .room: .software
    }
  }
}
