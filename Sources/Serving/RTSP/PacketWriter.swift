import NIOCore
import Streaming

/// Writes interleaved packets to connections; the bytes of a frame are copied into NIO's memory once for all
/// connections.
final class PacketWriter {
  /// The packets in ``buffer``.
  private var last: InterleavedBytes?
  private var buffer = ByteBuffer()

  /// Writes `bytes` to `connection`, for `transport`.
  func write(_ bytes: InterleavedBytes, to connection: RTSPConnection, of transport: InterleavedTransport) {
    if last !== bytes {
      last = bytes
      // Uses the same memory, unless a connection still has to write its content.
      buffer.clear(minimumCapacity: bytes.bytes.count)
      buffer.writeBytes(bytes.bytes)
    }
    connection.write(buffer, of: transport, endsFrame: bytes.isFrame)
  }
}
