import CVA
import Glibc
import Media

/// DMA-BUFs of a camera as surfaces that the driver encodes from: each is imported when it is first seen and kept,
/// since a camera has a handful of them that come round again.
final class ImportedSurfaces {
  /// Whether buffers are imported. Ends for good where the driver refuses one: the others are of the same kind.
  private(set) var isPossible: Bool
  private let display: VADisplayConnection
  private let size: PictureSize
  /// The newest last; with the number of the picture that each was last used for.
  private var known: [(buffer: DMABuffer, surface: VASurfaceID, lastUse: Int)] = []
  private var pictures = 0

  /// How many are kept: V4L2 has at most 32 buffers a queue (`VIDEO_MAX_FRAME`).
  static let limit = 32
  /// A buffer that has not come for so many pictures is of a camera that was stopped, and its memory is let go.
  static let staleness = 64

  /// Copies from now on: the driver imports buffers and does not encode from them.
  func giveUp() {
    isPossible = false
  }

  /// For pictures of `size`.
  init(_ display: VADisplayConnection, size: PictureSize, isPossible: Bool) {
    self.display = display
    self.size = size
    self.isPossible = isPossible
    known.reserveCapacity(Self.limit)
  }

  deinit {
    for entry in known { destroy(entry.surface) }
  }

  /// Whether `buffer` is worth a try.
  func accepts(_ buffer: DMABuffer) -> Bool {
    // The pitch and the offsets are 32 bits in the descriptor; the planes must lie in the buffer.
    let highest = Int(UInt32.max)
    return isPossible && buffer.fileDescriptor >= 0 && (1...highest).contains(buffer.byteCount)
      && (size.width...highest).contains(buffer.lumaStride) && (size.width...highest).contains(buffer.chromaStride)
      && (0...highest).contains(buffer.lumaOffset) && (0...highest).contains(buffer.chromaOffset)
      && buffer.lumaOffset + buffer.lumaStride * (size.height - 1) + size.width <= buffer.byteCount
      && buffer.chromaOffset + buffer.chromaStride * (size.height / 2 - 1) + size.width <= buffer.byteCount
  }

  /// A descriptor of our own for `buffer`, to be given to ``surface(for:_:)``; nil where the buffer is known already.
  ///
  /// Taken while the frame is there: a driver that comes back late must not find another file under the number.
  func descriptor(for buffer: DMABuffer) -> CInt? {
    for index in known.indices where known[index].buffer == buffer { return nil }
    return fcntl(buffer.fileDescriptor, F_DUPFD_CLOEXEC, 0)
  }

  /// The surface for `buffer`; nil where the driver refuses it. Closes `descriptor`.
  func surface(for buffer: DMABuffer, _ descriptor: CInt?) -> VASurfaceID? {
    defer { if let descriptor, descriptor >= 0 { close(descriptor) } }
    pictures += 1
    dropStale(but: buffer)
    for index in known.indices where known[index].buffer == buffer {
      known[index].lastUse = pictures
      return known[index].surface
    }
    guard let descriptor, descriptor >= 0, let surface = importing(buffer, descriptor) else {
      isPossible = false
      return nil
    }
    if let stale = known.firstIndex(where: { $0.buffer.identifier == buffer.identifier }) ?? oldest {
      destroy(known.remove(at: stale).surface)
    }
    known.append((buffer, surface, pictures))
    return surface
  }

  /// Lets go of one buffer that has not come for long.
  private func dropStale(but buffer: DMABuffer) {
    for index in known.indices {
      guard pictures - known[index].lastUse > Self.staleness, known[index].buffer != buffer else { continue }
      destroy(known.remove(at: index).surface)
      return
    }
  }

  /// The one to make room with, where there is none.
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
