import CLinux
import Glibc
package import Media
import Platform
import Synchronization

/// A camera's buffers: driver memory mapped into this process, which circulates between driver and appliance.
///
/// The queue owns the device, the maps and the frames in them. While such a frame exists, its memory exists too,
/// whatever happens to the camera. After ``stop()`` the last frame's end frees the memory.
package final class V4L2BufferQueue: FrameOwner, @unchecked Sendable {
  // Sendable: `ledger` guards the owner of each buffer and `enqueuePlanes`; only the camera's thread calls anything but
  // `recycle`. That thread replaces `memory` while no frame is out. After `stop`, the thread that returns the last
  // buffer drops `memory`; the camera's thread does not read `memory` then: see `BufferLedger.mayRelease`.

  /// The smallest number of buffers requested.
  static let leastCount = 4
  /// The smallest number of buffers requested if frames lie in them.
  package static let zeroCopyCount = 6
  /// The number of buffers that stay with the driver while frames hold others: one to fill and the next one.
  package static let driverShare = 2

  private let device: V4L2Device
  private let format: DriverFormat
  private let wanted: Int
  private let isExported: Bool
  private let driverRotation: DriverRotation?
  private let blank: FramePool?
  private let dequeuePlanes: UnsafeMutablePointer<v4l2_plane>
  private let enqueuePlanes: UnsafeMutablePointer<v4l2_plane>
  private var memory: BufferMemory?
  private let ledger = Mutex(BufferLedger())

  /// Requests `wanted` buffers of the present format from the driver, and maps as many as the driver grants.
  ///
  /// - Parameters:
  ///   - isExported: `true` if frames shall lie in the buffers and hardware shall read them there.
  ///   - driverRotation: the rotation that the driver applies; restored once the driver has the buffers back.
  ///   - blank: the pool of the planes of frames that have no samples; lives as long as such a frame.
  /// - Throws: ``CaptureError``; then nothing stays allocated.
  init(
    device: V4L2Device, format: DriverFormat, wanted: Int, isExported: Bool, driverRotation: DriverRotation? = nil,
    blank: FramePool? = nil
  ) throws(CaptureError) {
    memory = try BufferMemory(device: device, format: format, wanted: wanted, isExported: isExported)
    self.device = device
    self.format = format
    self.wanted = wanted
    self.isExported = isExported
    self.driverRotation = driverRotation
    self.blank = blank
    dequeuePlanes = .allocate(capacity: V4L2Device.planeLimit)
    dequeuePlanes.initialize(repeating: v4l2_plane(), count: V4L2Device.planeLimit)
    enqueuePlanes = .allocate(capacity: V4L2Device.planeLimit)
    enqueuePlanes.initialize(repeating: v4l2_plane(), count: V4L2Device.planeLimit)
    super.init()
  }

  deinit {
    release()
    dequeuePlanes.deallocate()
    enqueuePlanes.deallocate()
  }

  /// The number of buffers; 0 after their memory was freed.
  var count: Int { memory?.count ?? 0 }

  /// Queues all buffers that no frame holds, and starts the stream. If the buffers were freed, calls `renew` first,
  /// because other programs may have used the device, and requests new buffers.
  ///
  /// - Throws: ``CaptureError``; also the error of `renew`.
  func start(renew: () throws(CaptureError) -> Void) throws(CaptureError) {
    // From here on the end of a frame keeps the memory.
    ledger.withLock { $0.setEnding(false) }
    if memory == nil {
      try renew()
      memory = try BufferMemory(device: device, format: format, wanted: wanted, isExported: isExported)
    }
    let (call, errorNumber) = ledger.withLock { ledger -> (String, CInt) in
      guard !ledger.isStreaming else { return ("", 0) }
      let refusal = enqueueIdle(&ledger)
      if refusal != 0 { return ("VIDIOC_QBUF", refusal) }
      var type = CInt(bitPattern: device.bufferType)
      let errorNumber = device.control(nightjar_VIDIOC_STREAMON, &type)
      ledger.isStreaming = errorNumber == 0
      return ("VIDIOC_STREAMON", errorNumber)
    }
    guard errorNumber == 0 else {
      pause()
      throw device.failure(call, errorNumber)
    }
  }

  /// Stops the stream temporarily; the driver releases all buffers. Buffers held by frames stay unchanged.
  func pause() {
    ledger.withLock { ledger in switchOff(&ledger) }
  }

  /// Stops the stream and frees the memory, at once or with the last frame in it. Idempotent.
  func stop() {
    ledger.withLock { ledger in
      switchOff(&ledger)
      ledger.setEnding(true)
      if ledger.mayRelease { release() }
    }
  }

  /// Takes a filled buffer from the driver. The buffer is held until ``recycle(slot:)``.
  ///
  /// - Returns: 0, or an `errno`: `EAGAIN` if no buffer is filled.
  func dequeue(into buffer: inout DequeuedBuffer) -> CInt {
    var argument = device.bufferArgument(dequeuePlanes)
    let errorNumber = device.control(nightjar_VIDIOC_DQBUF, &argument)
    guard errorNumber == 0 else { return errorNumber }
    let index = Int(argument.index)
    guard let memory, index < memory.count else { return EPROTO }
    buffer.mayBeLent = ledger.withLock { ledger in
      ledger.noteDequeued(index)
      return ledger.mayLend
    }
    buffer.index = index
    buffer.flags = argument.flags
    buffer.field = argument.field
    buffer.sequence = argument.sequence
    buffer.timestamp = Instant(
      nanoseconds: Int64(argument.timestamp.tv_sec) &* 1_000_000_000 &+ Int64(argument.timestamp.tv_usec) &* 1000)
    buffer.contents.0 = contents(memory, 0, argument)
    buffer.contents.1 = contents(memory, 1, argument)
    buffer.contents.2 = contents(memory, 2, argument)
    return 0
  }

  /// Returns held buffer `index` as a DMA-BUF, with the picture at `planes` in it; nil if the driver does not export.
  func dmaBuffer(index: Int, planes: NV12Planes) -> DMABuffer? {
    memory?.dmaBuffer(index: index, planes: planes)
  }

  /// Returns a buffer to the driver when the frame in it ends. The last buffer after ``stop()`` frees the memory.
  package override func recycle(slot: Int) {
    ledger.withLock { ledger in
      ledger.noteReturned(slot)
      // A buffer that the driver refuses now is queued again with the next one.
      if ledger.isStreaming { _ = enqueueIdle(&ledger) }
      if ledger.mayRelease { release() }
    }
  }

  private func release() {
    memory = nil
    driverRotation?.restore()
  }

  private func switchOff(_ ledger: inout BufferLedger) {
    if memory != nil {
      var type = CInt(bitPattern: device.bufferType)
      _ = device.control(nightjar_VIDIOC_STREAMOFF, &type)
    }
    ledger.notePaused()
  }

  /// Queues every idle buffer. Returns 0, or the first `errno` of a refusal.
  private func enqueueIdle(_ ledger: inout BufferLedger) -> CInt {
    var refusal: CInt = 0
    for index in 0..<count where ledger.isIdle(index) {
      var argument = device.bufferArgument(enqueuePlanes)
      argument.index = UInt32(index)
      let errorNumber = device.control(nightjar_VIDIOC_QBUF, &argument)
      if errorNumber == 0 {
        ledger.noteQueued(index)
      } else if refusal == 0 {
        refusal = errorNumber
      }
    }
    return refusal
  }

  /// Returns the used bytes of a plane as the driver reports them, but never beyond the map.
  private func contents(_ memory: BufferMemory, _ plane: Int, _ argument: v4l2_buffer) -> DequeuedPlane {
    guard plane < format.planes.count else { return DequeuedPlane() }
    let index = Int(argument.index)
    let capacity = memory.byteCount(index: index, plane: plane)
    var start = 0
    var end = Int(argument.bytesused)
    if device.identity.isMultiPlanar {
      start = min(Int(dequeuePlanes[plane].data_offset), capacity)
      end = Int(dequeuePlanes[plane].bytesused)
    }
    end = min(end, capacity)
    return DequeuedPlane(base: memory.base(index: index, plane: plane) + start, byteCount: max(0, end - start))
  }
}

/// The places of an NV12 picture's planes in a driver's buffer, in one memory plane or in two.
package struct NV12Layout {
  private let size: PictureSize
  private let lumaStride: Int
  private let chromaStride: Int
  private let isSplit: Bool

  /// Creates the layout of `format`; nil if its planes cannot hold such a picture.
  package init?(_ format: DriverFormat) {
    isSplit = format.pixelFormat == .nm12
    guard isSplit || format.pixelFormat == .nv12, format.planes.count == (isSplit ? 2 : 1) else { return nil }
    size = format.size
    lumaStride = format.planes[0].stride
    chromaStride = format.planes[isSplit ? 1 : 0].stride
    guard lumaStride >= size.width, chromaStride >= size.width else { return nil }
    guard format.planes[0].byteCount >= firstBytes, !isSplit || format.planes[1].byteCount >= secondBytes
    else { return nil }
  }

  /// Returns the planes in `buffer`; nil if the buffer holds fewer bytes than the picture has.
  package func planes(of buffer: DequeuedBuffer) -> NV12Planes? {
    guard let luma = buffer.contents.0.base, buffer.contents.0.byteCount >= firstBytes else { return nil }
    var chroma = luma + lumaStride * size.height
    if isSplit {
      guard let base = buffer.contents.1.base, buffer.contents.1.byteCount >= secondBytes else { return nil }
      chroma = base
    }
    return NV12Planes(
      size: size, luma: luma, lumaStride: lumaStride, chroma: chroma, chromaStride: chromaStride)
  }

  /// The smallest number of bytes of the first memory plane; the last row need not be padded.
  private var firstBytes: Int {
    let rows = isSplit ? size.height : size.height + size.height / 2
    return lumaStride * (rows - 1) + size.width
  }

  /// The smallest number of bytes of the second memory plane.
  private var secondBytes: Int { chromaStride * (size.height / 2 - 1) + size.width }
}
