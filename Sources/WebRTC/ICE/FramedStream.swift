package import Platform

/// The bytes that a peer sends on a TCP connection: datagrams, each behind its length in two bytes (RFC 4571 section 2).
package struct FramedStream: Sendable {
  /// The beginning of a frame of which the rest has not come, length included.
  private var rest: [UInt8] = []

  /// The most bytes of a datagram.
  package static let datagramLimit = 2048
  private static let lengthBytes = 2

  /// A length beyond the limit. Nothing that follows can be read.
  package struct LengthError: Failure, Hashable {
    /// The length.
    package let length: Int

    /// Creates an error.
    package init(length: Int) {
      self.length = length
    }

    /// A one-line description for the log.
    package var description: String {
      "a datagram of \(length) bytes on a TCP connection: at most \(FramedStream.datagramLimit) are read"
    }
    /// The kind of failure.
    package var kind: FailureKind { .data }
  }

  /// Creates the stream of a new connection.
  package init() {}

  /// Takes the next bytes, in whatever pieces they come, and delivers the datagrams that are complete. At most one
  /// incomplete datagram is kept.
  ///
  /// - Parameter deliver: takes a datagram, valid during the call. Returns `false` to leave the rest unread.
  /// - Throws: ``LengthError``, before any byte of the datagram is kept.
  package mutating func take(
    _ bytes: UnsafeRawBufferPointer, _ deliver: (UnsafeRawBufferPointer) -> Bool
  ) throws(LengthError) {
    var bytes = bytes[...]
    while !bytes.isEmpty {
      if rest.isEmpty, bytes.count >= Self.lengthBytes {
        let end = try Self.length(bytes[bytes.startIndex], bytes[bytes.startIndex + 1]) + Self.lengthBytes
        if bytes.count >= end {
          let datagram = UnsafeRawBufferPointer(rebasing: bytes.prefix(end).dropFirst(Self.lengthBytes))
          bytes = bytes.dropFirst(end)
          guard deliver(datagram) else { return }
          continue
        }
      }
      let wanted =
        rest.count < Self.lengthBytes ? Self.lengthBytes : try Self.length(rest[0], rest[1]) + Self.lengthBytes
      let part = bytes.prefix(wanted - rest.count)
      rest += part
      bytes = bytes.dropFirst(part.count)
      guard rest.count >= Self.lengthBytes,
        try rest.count == Self.length(rest[0], rest[1]) + Self.lengthBytes
      else { continue }
      let datagram = rest
      rest = []
      let goesOn = datagram.withUnsafeBytes { deliver(UnsafeRawBufferPointer(rebasing: $0[Self.lengthBytes...])) }
      guard goesOn else { return }
    }
  }

  private static func length(_ high: UInt8, _ low: UInt8) throws(LengthError) -> Int {
    let length = Int(high) << 8 | Int(low)
    guard length <= datagramLimit else { throw LengthError(length: length) }
    return length
  }
}
