import CLinux
import Glibc
import Media

/// One allocation of a camera's buffers (`VIDIOC_REQBUFS`): mapped here and, if frames lie in them, exported.
///
/// The end of the object frees the driver's memory and releases the device for other programs.
final class BufferMemory {
  /// The number of buffers.
  let count: Int

  private let device: V4L2Device
  private let planeCount: Int
  private let maps: UnsafeMutablePointer<MappedMemory>
  private var mapped = 0
  private let exports: UnsafeMutablePointer<ExportedBuffer>
  private var exported = 0

  /// Requests `wanted` buffers of the present format from the driver, and maps as many as the driver grants.
  ///
  /// - Parameter isExported: `true` exports the buffers too, if driver and format allow it.
  /// - Throws: ``CaptureError``; then nothing stays allocated.
  init(device: V4L2Device, format: DriverFormat, wanted: Int, isExported: Bool) throws(CaptureError) {
    let granted = try Self.allocate(wanted, device: device)
    self.device = device
    count = granted
    planeCount = format.planes.count
    maps = .allocate(capacity: granted * format.planes.count)
    exports = .allocate(capacity: granted)
    // From here on `deinit` frees everything, so the first failure may simply be thrown.
    guard granted >= V4L2BufferQueue.driverShare else {
      throw .implausible(path: device.path, "gives only \(granted) buffers: no memory for a picture of this size?")
    }
    for index in 0..<granted { try map(index, format) }
    if isExported, planeCount == 1 { export() }
  }

  deinit {
    // In this order: before Linux 5.0 a driver frees no buffer that is mapped or exported.
    exports.deinitialize(count: exported)
    exports.deallocate()
    maps.deinitialize(count: mapped)
    maps.deallocate()
    // An unplugged device refuses; its memory is gone already, and the error concerns no one.
    _ = try? Self.allocate(0, device: device)
  }

  /// Returns the start of plane `plane` of buffer `index`.
  func base(index: Int, plane: Int) -> UnsafeMutablePointer<UInt8> {
    maps[index * planeCount + plane].base
  }

  /// Returns the length in bytes of plane `plane` of buffer `index`.
  func byteCount(index: Int, plane: Int) -> Int {
    maps[index * planeCount + plane].byteCount
  }

  /// Returns buffer `index` as a DMA-BUF, with the picture at `planes` in it; nil if the buffer is not exported.
  func dmaBuffer(index: Int, planes: NV12Planes) -> DMABuffer? {
    guard index < exported else { return nil }
    let start = base(index: index, plane: 0)
    return DMABuffer(
      fileDescriptor: exports[index].descriptor, identifier: exports[index].identifier,
      byteCount: byteCount(index: index, plane: 0), lumaOffset: planes.luma - start, lumaStride: planes.lumaStride,
      chromaOffset: planes.chroma - start, chromaStride: planes.chromaStride)
  }

  private static func allocate(_ wanted: Int, device: V4L2Device) throws(CaptureError) -> Int {
    var request = v4l2_requestbuffers()
    request.count = UInt32(clamping: wanted)
    request.type = device.bufferType
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try device.require("VIDIOC_REQBUFS", nightjar_VIDIOC_REQBUFS, &request)
    return min(Int(request.count), Int(nightjar_VIDEO_MAX_FRAME))
  }

  private func map(_ index: Int, _ format: DriverFormat) throws(CaptureError) {
    let planes = UnsafeMutablePointer<v4l2_plane>.allocate(capacity: V4L2Device.planeLimit)
    planes.initialize(repeating: v4l2_plane(), count: V4L2Device.planeLimit)
    defer { planes.deallocate() }
    var argument = device.bufferArgument(planes)
    argument.index = UInt32(index)
    try device.require("VIDIOC_QUERYBUF", nightjar_VIDIOC_QUERYBUF, &argument)
    if device.identity.isMultiPlanar, Int(argument.length) != planeCount {
      throw .implausible(path: device.path, "gives buffers of \(argument.length) planes instead of \(planeCount)")
    }
    for plane in 0..<planeCount {
      let (offset, length) =
        device.identity.isMultiPlanar
        ? (planes[plane].m.mem_offset, Int(planes[plane].length))
        : (argument.m.offset, Int(argument.length))
      guard length >= format.planes[plane].byteCount, length <= DriverFormat.planeLimit else {
        throw .implausible(path: device.path, "gives buffers of \(length) bytes")
      }
      guard let map = MappedMemory(descriptor: device.descriptor, offset: offset, byteCount: length) else {
        throw .refused(path: device.path, call: "mmap", errorNumber: errno)
      }
      (maps + mapped).initialize(to: map)
      mapped += 1
    }
  }

  /// Exports all buffers or none: an importer relies on the next frame being importable too.
  private func export() {
    for index in 0..<count {
      guard let buffer = ExportedBuffer(device: device, index: index, plane: 0) else {
        exports.deinitialize(count: exported)
        exported = 0
        return
      }
      (exports + index).initialize(to: buffer)
      exported += 1
    }
  }
}

extension V4L2Device {
  /// The largest number of memory planes in the interface.
  static let planeLimit = Int(nightjar_VIDEO_MAX_PLANES)

  /// Returns the argument of calls about a buffer. `planes` has room for ``planeLimit`` planes and outlives the call.
  func bufferArgument(_ planes: UnsafeMutablePointer<v4l2_plane>) -> v4l2_buffer {
    var argument = v4l2_buffer()
    argument.type = bufferType
    argument.memory = V4L2_MEMORY_MMAP.rawValue
    guard identity.isMultiPlanar else { return argument }
    planes.update(repeating: v4l2_plane(), count: Self.planeLimit)
    argument.m.planes = planes
    argument.length = UInt32(Self.planeLimit)
    return argument
  }
}
