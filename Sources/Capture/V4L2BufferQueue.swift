import CLinux
import Glibc
import Media
import Synchronization

/// A camera's buffers: driver memory mapped into this process, going round between the driver and us.
///
/// It owns the device and the maps, and it is the owner of frames that lie in them: as long as such a frame lives,
/// so does the memory, whatever became of the camera. After ``stop()`` the memory goes with the last of them.
final class V4L2BufferQueue: FrameOwner, @unchecked Sendable {
  // Sendable: whose each buffer is, is guarded by `ledger`, and so are `enqueuePlanes`; all but `recycle` is called
  // by the camera's thread only. `memory` is replaced by that thread while no frame is out, and dropped by the one
  // that returns the last buffer after `stop`, when that thread does not look at it: see `BufferLedger.mayRelease`.

  /// The fewest buffers that are asked for.
  static let leastCount = 4
  /// The fewest where frames lie in them.
  static let zeroCopyCount = 6
  /// How many must stay with the driver while frames hold others: one to fill, one to go on with.
  static let driverShare = 2

  private let device: V4L2Device
  private let format: DriverFormat
  private let wanted: Int
  private let isExported: Bool
  private let turn: DriverTurn?
  private let dequeuePlanes: UnsafeMutablePointer<v4l2_plane>
  private let enqueuePlanes: UnsafeMutablePointer<v4l2_plane>
  private var memory: BufferMemory?
  private let ledger = Mutex(BufferLedger())

  /// Asks the driver for `wanted` buffers of the format that is set, and maps as many as it gives.
  ///
  /// - Parameters:
  ///   - isExported: whether frames shall lie in them, and hardware read them there.
  ///   - turn: what the driver does to the pictures in them; restored once it has the buffers back.
  /// - Throws: ``CaptureError``; then nothing is left behind.
  init(
    device: V4L2Device, format: DriverFormat, wanted: Int, isExported: Bool, turn: DriverTurn? = nil
  ) throws(CaptureError) {
    memory = try BufferMemory(device: device, format: format, wanted: wanted, isExported: isExported)
    self.device = device
    self.format = format
    self.wanted = wanted
    self.isExported = isExported
    self.turn = turn
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

  /// How many buffers there are; 0 once they were given back.
  var count: Int { memory?.count ?? 0 }

  /// Gives the driver all buffers that no frame holds, and starts the stream. Asks for new buffers where they were
  /// given back; `renew` is called before, because others may have used the device meanwhile.
  ///
  /// - Throws: ``CaptureError``; also what `renew` throws.
  func start(renew: () throws(CaptureError) -> Void) throws(CaptureError) {
    // From here on a frame that ends leaves the memory alone.
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

  /// Stops the stream for now; the driver lets go of all buffers. Those that frames hold stay as they are.
  func pause() {
    ledger.withLock { ledger in switchOff(&ledger) }
  }

  /// Stops the stream and gives the memory back, now or with the last frame in it. Idempotent.
  func stop() {
    ledger.withLock { ledger in
      switchOff(&ledger)
      ledger.setEnding(true)
      if ledger.mayRelease { release() }
    }
  }

  /// Takes a filled buffer from the driver; from then on it is held until ``recycle(slot:)``.
  ///
  /// - Returns: 0, or an `errno`: `EAGAIN` where none is filled.
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
    buffer.timestamp = MediaTime(
      nanoseconds: Int64(argument.timestamp.tv_sec) &* 1_000_000_000 &+ Int64(argument.timestamp.tv_usec) &* 1000)
    buffer.contents.0 = contents(memory, 0, argument)
    buffer.contents.1 = contents(memory, 1, argument)
    buffer.contents.2 = contents(memory, 2, argument)
    return 0
  }

  /// Held buffer `index` for hardware, with the picture at `planes` in it; nil where the driver does not export.
  func dmaBuffer(index: Int, planes: NV12Planes) -> DMABuffer? {
    memory?.dmaBuffer(index: index, planes: planes)
  }

  /// Gives a buffer back to the driver; called when the frame in it ends. The last one after ``stop()`` takes the
  /// memory with it.
  override func recycle(slot: Int) {
    ledger.withLock { ledger in
      ledger.noteReturned(slot)
      // What the driver refuses now, it is offered again with the next buffer.
      if ledger.isStreaming { _ = enqueueIdle(&ledger) }
      if ledger.mayRelease { release() }
    }
  }

  private func release() {
    memory = nil
    turn?.restore()
  }

  private func switchOff(_ ledger: inout BufferLedger) {
    if memory != nil {
      var type = CInt(bitPattern: device.bufferType)
      _ = device.control(nightjar_VIDIOC_STREAMOFF, &type)
    }
    ledger.notePaused()
  }

  /// Gives the driver every idle buffer; 0, or the first `errno` of those that it refused.
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

  /// The used bytes of a plane, as the driver gives them but never beyond the map.
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
