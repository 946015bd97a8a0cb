import NIOCore
import Streaming

/// Writes interleaved packets to connections; the bytes of a frame are taken into NIO's memory once, for all of them.
final class PacketWriter {
  /// What ``buffer`` holds.
  private var last: InterleavedBytes?
  private var buffer = ByteBuffer()

  /// Writes `bytes` to `connection`, for `transport`.
  func write(_ bytes: InterleavedBytes, to connection: Connection, of transport: InterleavedTransport) {
    if last !== bytes {
      last = bytes
      // In the same memory, unless a connection still has to write what is there.
      buffer.clear(minimumCapacity: bytes.bytes.count)
      buffer.writeBytes(bytes.bytes)
    }
    connection.write(buffer, endingFrameOf: bytes.isFrame ? transport : nil)
  }
}
