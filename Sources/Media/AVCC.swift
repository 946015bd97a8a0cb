/// NAL units with their length in front, big-endian, as MP4 and hardware interfaces have them: ISO/IEC 14496-15 clause
/// 5.3.4.2. Written with lengths of four bytes, read with one, two or four.
public enum AVCC {
  /// The bytes of a length that is written here.
  public static let lengthSize = 4
  /// The most bytes that one access unit may have unless told otherwise; 4K pictures stay under 4 MB.
  public static let accessUnitLimit = 64 << 20

  /// Calls `body` with each NAL unit of `stream`, whose lengths have `lengthSize` bytes.
  ///
  /// - Throws: ``NALUnitFormatError`` for a length of zero, or one that leads out of `stream`; `body` got those before.
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

  /// The bytes that `unit` has in this format.
  public static func byteCount(of unit: borrowing AccessUnit) -> Int {
    unit.payloadBytes + unit.nalUnits.count * lengthSize
  }

  /// Writes `unit` into `memory` and returns how many bytes it took. Allocates nothing.
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

  /// A byte stream (Annex B) in this format.
  ///
  /// - Throws: ``NALUnitFormatError/tooLong(_:limit:)``, before any memory is taken.
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

  /// Writes one NAL unit at `position` and returns where it ends; the caller has made sure of the room.
  private static func append(_ unit: NALUnit, to memory: UnsafeMutableRawBufferPointer, at position: Int) -> Int {
    memory.storeBytes(of: UInt32(unit.bytes.count).bigEndian, toByteOffset: position, as: UInt32.self)
    let end = position + lengthSize + unit.bytes.count
    UnsafeMutableRawBufferPointer(rebasing: memory[position + lengthSize..<end]).copyMemory(from: unit.bytes)
    return end
  }
}

extension AnnexB {
  /// Length-prefixed NAL units (``AVCC``) as a byte stream, each with a start code of four bytes.
  ///
  /// - Throws: ``NALUnitFormatError``; `tooLong` before any memory is taken.
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

/// Why NAL units could not be brought into another format.
public enum NALUnitFormatError: Failure {
  /// A length leads out of the data.
  case truncated(expected: Int, found: Int)
  /// A length is zero.
  case empty
  /// Lengths have one, two or four bytes.
  case lengthSize(Int)
  /// There are more bytes than are taken.
  case tooLong(Int, limit: Int)
  /// The memory given is too small.
  case room(needed: Int, available: Int)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .truncated(let expected, let found): "a NAL unit of \(expected) bytes where \(found) are left"
    case .empty: "a NAL unit without a byte"
    case .lengthSize(let size): "NAL unit lengths of \(size) bytes: 1, 2 or 4 are possible"
    case .tooLong(let count, let limit): "\(count) bytes of NAL units, at most \(limit) are taken"
    case .room(let needed, let available): "\(needed) bytes of NAL units for a memory of \(available)"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .truncated, .empty, .lengthSize, .tooLong: .data
    case .room: .software
    }
  }
}
