import NIOCore
import Streaming

/// Writes interleaved packets to connections; the bytes of a frame are taken into NIO's memory once, for all of them.
final class PacketWriter {
  private var last: (bytes: InterleavedBytes, buffer: ByteBuffer)?

  /// Writes `bytes` to `connection`, for `transport`.
  func write(_ bytes: InterleavedBytes, to connection: Connection, of transport: InterleavedTransport) {
    let buffer: ByteBuffer
    if let last, last.bytes === bytes {
      buffer = last.buffer
    } else {
      buffer = ByteBuffer(bytes: bytes.bytes)
      last = (bytes, buffer)
    }
    guard bytes.isFrame else { return connection.write(buffer) }
    connection.write(buffer) { transport.frameHasLeft() }
  }
}
