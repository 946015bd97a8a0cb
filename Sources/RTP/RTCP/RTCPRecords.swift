/// A part of an RTCP packet that has a fixed size and is repeated.
public protocol RTCPRecord: Equatable, Sendable {
  /// The size on the wire in bytes.
  static var byteCount: Int { get }
  /// Reads the record at the start of `bytes`, which has at least ``byteCount`` bytes.
  init(record bytes: UnsafeRawBufferPointer)
  /// Writes ``byteCount`` bytes.
  func write(to memory: UnsafeMutableRawPointer)
}

/// The records of a received RTCP packet, read in place; valid as long as the packet's bytes are.
public struct RTCPRecords<Record: RTCPRecord>: RandomAccessCollection {
  private let bytes: UnsafeRawBufferPointer

  /// Creates a list of the complete records in `bytes`; an incomplete one at the end is ignored.
  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of records.
  public var endIndex: Int { bytes.count / Record.byteCount }

  /// Returns record number `index`.
  public subscript(index: Int) -> Record {
    let start = index * Record.byteCount
    return Record(record: UnsafeRawBufferPointer(rebasing: bytes[start..<start + Record.byteCount]))
  }
}

/// A synchronization source in a list, as in BYE.
public struct SynchronizationSource: RTCPRecord, Hashable {
  /// The size on the wire in bytes.
  public static let byteCount = 4
  /// The SSRC, RFC 3550 section 3.
  public var ssrc: UInt32

  /// Creates a source of this number.
  public init(_ ssrc: UInt32) {
    self.ssrc = ssrc
  }

  /// Reads a source.
  public init(record bytes: UnsafeRawBufferPointer) {
    ssrc = bytes.bigEndian(at: 0)
  }

  /// Writes the source.
  public func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBigEndian(ssrc, at: 0)
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the number in network byte order at `offset`.
  ///
  /// - Precondition: The number lies within the bytes.
  @inline(__always)
  func bigEndian<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Value {
    precondition(offset >= 0 && offset <= count - MemoryLayout<Value>.size, "a number beyond the bytes")
    return Value(bigEndian: loadUnaligned(fromByteOffset: offset, as: Value.self))
  }
}
