import RTP

/// The memory of one packet, released with its owner, also where the owner's creation fails.
final class PacketMemory {
  /// The bytes: as many as the largest packet.
  let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: PacketSize.maximum, alignment: 16)

  deinit { bytes.deallocate() }
}

/// Returns the first `count` bytes of `memory`.
func rebased(_ memory: UnsafeMutableRawBufferPointer, _ count: Int) -> UnsafeRawBufferPointer {
  UnsafeRawBufferPointer(rebasing: memory[..<count])
}
