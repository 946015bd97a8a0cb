import CVA
import Glibc
import Media
import Platform

/// DMA-BUFs of a camera as surfaces that the driver encodes from. Each is imported at its first use and kept, since a
/// camera reuses a small set of buffers.
final class ImportedSurfaces {
  /// `true` if buffers are imported. Becomes `false` for good when the driver refuses one, because the others are of
  /// the same kind.
  private(set) var isPossible: Bool
  private let display: VADisplayConnection
  private let size: PictureSize
  /// The imported buffers, the newest last. `lastUse` is the number of the picture that last used the buffer.
  private var known: [(buffer: DMABuffer, surface: VASurfaceID, lastUse: Int)] = []
  private var pictures = 0

  /// The maximum number of buffers that are kept: V4L2 has at most 32 buffers per queue (`VIDEO_MAX_FRAME`).
  static let limit = 32
  /// The number of pictures after which an unused buffer is released: its camera was stopped.
  static let staleness = 64

  /// Stops importing, so that frames are copied: the driver imports buffers but does not encode from them.
  func giveUp() {
    isPossible = false
  }

  /// Creates an empty set for pictures of `size`.
  init(_ display: VADisplayConnection, size: PictureSize, isPossible: Bool) {
    self.display = display
    self.size = size
    self.isPossible = isPossible
    known.reserveCapacity(Self.limit)
  }

  deinit {
    for entry in known { destroy(entry.surface) }
  }

  /// Returns `true` if an import of `buffer` should be tried.
  func accepts(_ buffer: DMABuffer) -> Bool {
    // The pitch and the offsets are 32 bits in the descriptor; the planes must lie in the buffer.
    let highest = Int(UInt32.max)
    return isPossible && buffer.fileDescriptor >= 0 && (1...highest).contains(buffer.byteCount)
      && (size.width...highest).contains(buffer.lumaStride) && (size.width...highest).contains(buffer.chromaStride)
      && (0...highest).contains(buffer.lumaOffset) && (0...highest).contains(buffer.chromaOffset)
      && buffer.lumaOffset + buffer.lumaStride * (size.height - 1) + size.width <= buffer.byteCount
      && buffer.chromaOffset + buffer.chromaStride * (size.height / 2 - 1) + size.width <= buffer.byteCount
  }

  /// Returns a duplicated descriptor of `buffer` for ``surface(for:_:)``; nil if the buffer is already imported.
  ///
  /// The descriptor is duplicated while the frame exists: a driver that answers late must not find another file under
  /// the number.
  func descriptor(for buffer: DMABuffer) -> FileDescriptor? {
    for index in known.indices where known[index].buffer == buffer { return nil }
    return try? FileDescriptor(from: "fcntl") { fcntl(buffer.fileDescriptor, F_DUPFD_CLOEXEC, 0) }
  }

  /// Returns the surface for `buffer`; nil if the driver refuses it.
  func surface(for buffer: DMABuffer, _ descriptor: consuming FileDescriptor?) -> VASurfaceID? {
    pictures += 1
    dropStale(but: buffer)
    for index in known.indices where known[index].buffer == buffer {
      known[index].lastUse = pictures
      return known[index].surface
    }
    guard let descriptor, let surface = importing(buffer, descriptor.number) else {
      isPossible = false
      return nil
    }
    if let stale = known.firstIndex(where: { $0.buffer.identifier == buffer.identifier }) ?? oldest {
      destroy(known.remove(at: stale).surface)
    }
    known.append((buffer, surface, pictures))
    return surface
  }

  /// Releases one buffer that was not used for more than ``staleness`` pictures.
  private func dropStale(but buffer: DMABuffer) {
    for index in known.indices {
      guard pictures - known[index].lastUse > Self.staleness, known[index].buffer != buffer else { continue }
      destroy(known.remove(at: index).surface)
      return
    }
  }

  /// The index of the buffer to replace; nil if there is room.
  private var oldest: Int? { known.count == Self.limit ? 0 : nil }

  private func importing(_ buffer: DMABuffer, _ descriptor: CInt) -> VASurfaceID? {
    var layout = nightjar_va_nv12_descriptor(
      descriptor, UInt32(buffer.byteCount), UInt32(size.width), UInt32(size.height),
      UInt32(buffer.lumaOffset), UInt32(buffer.lumaStride), UInt32(buffer.chromaOffset), UInt32(buffer.chromaStride))
    return withUnsafeMutablePointer(to: &layout) { pointer in
      var memory = VASurfaceAttrib()
      memory.type = VASurfaceAttribMemoryType
      memory.flags = UInt32(VA_SURFACE_ATTRIB_SETTABLE)
      memory.value.type = VAGenericValueTypeInteger
      memory.value.value.i = CInt(bitPattern: UInt32(VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2))
      var external = VASurfaceAttrib()
      external.type = VASurfaceAttribExternalBufferDescriptor
      external.flags = UInt32(VA_SURFACE_ATTRIB_SETTABLE)
      external.value.type = VAGenericValueTypePointer
      external.value.value.p = UnsafeMutableRawPointer(pointer)
      var attributes = [memory, external]
      var surface = VASurfaceID(VA_INVALID_SURFACE)
      let status = vaCreateSurfaces(
        display.handle, UInt32(VA_RT_FORMAT_YUV420), UInt32(size.width), UInt32(size.height), &surface, 1, &attributes,
        UInt32(attributes.count))
      return status == VA_STATUS_SUCCESS ? surface : nil
    }
  }

  private func destroy(_ surface: VASurfaceID) {
    var surface = surface
    vaDestroySurfaces(display.handle, &surface, 1)
  }
}
