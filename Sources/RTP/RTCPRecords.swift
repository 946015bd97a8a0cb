/// A part of an RTCP packet that has a fixed size and is repeated.
public protocol RTCPRecord: Equatable, Sendable {
  /// Its size on the wire.
  static var byteCount: Int { get }
  /// The record at the start of `bytes`, which has at least ``byteCount``.
  init(record bytes: UnsafeRawBufferPointer)
  /// Writes ``byteCount`` bytes.
  func write(to memory: UnsafeMutableRawPointer)
}

/// The records of a received RTCP packet, read where they lie; valid as long as the packet's bytes are.
public struct RTCPRecords<Record: RTCPRecord>: RandomAccessCollection {
  private let bytes: UnsafeRawBufferPointer

  /// The whole records in `bytes`; a rest is not looked at.
  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// 0.
  public var startIndex: Int { 0 }
  /// How many there are.
  public var endIndex: Int { bytes.count / Record.byteCount }

  /// Record number `index`.
  public subscript(index: Int) -> Record {
    let start = index * Record.byteCount
    return Record(record: UnsafeRawBufferPointer(rebasing: bytes[start..<start + Record.byteCount]))
  }
}

/// A synchronization source in a list of them, as BYE has it.
public struct SynchronizationSource: RTCPRecord, Hashable {
  /// Its size on the wire.
  public static let byteCount = 4
  /// The SSRC, RFC 3550 section 3.
  public var ssrc: UInt32

  /// A source of this number.
  public init(_ ssrc: UInt32) {
    self.ssrc = ssrc
  }

  /// Reads one.
  public init(record bytes: UnsafeRawBufferPointer) {
    ssrc = bytes.bigEndian(at: 0)
  }

  /// Writes it.
  public func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBigEndian(ssrc, at: 0)
  }
}

extension UnsafeRawBufferPointer {
  /// The number in network byte order at `offset`, which lies within the bytes: checked, never read beyond.
  @inline(__always)
  func bigEndian<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Value {
    precondition(offset >= 0 && offset <= count - MemoryLayout<Value>.size, "a number beyond the bytes")
    return Value(bigEndian: loadUnaligned(fromByteOffset: offset, as: Value.self))
  }
}
