import CLinux
import Glibc
import Media
import Synchronization

/// A camera's buffers: driver memory mapped into this process, going round between the driver and us.
///
/// It owns the device and the maps, and it is the owner of frames that lie in them: as long as such a frame lives,
/// so does the memory, whatever became of the camera.
final class V4L2BufferQueue: FrameOwner, @unchecked Sendable {
  // Sendable: the maps never change after `init`; whose each buffer is, is guarded by `state`, and so are
  // `enqueuePlanes`; all but `recycle` is called by the camera's thread only.

  /// The fewest buffers that are asked for.
  static let leastCount = 4
  /// The fewest where frames lie in them.
  static let zeroCopyCount = 6
  /// How many must stay with the driver while frames hold others: one to fill, one to go on with.
  static let driverShare = 2

  /// How many buffers there are.
  let count: Int

  private let device: V4L2Device
  private let planeCount: Int
  private let maps: UnsafeMutablePointer<MappedMemory>
  private var mapped = 0
  private let dequeuePlanes: UnsafeMutablePointer<v4l2_plane>
  private let enqueuePlanes: UnsafeMutablePointer<v4l2_plane>
  private let waiting: UnsafeMutablePointer<pollfd>
  /// An eventfd: readable once a buffer came back while `awaitReturn` was waiting.
  private let returned: CInt
  private let state = Mutex(State())

  /// Whose each buffer is, one bit each. A buffer that is neither queued nor held lies idle: before the start, after
  /// the end, or because the driver refused it.
  private struct State {
    var isStreaming = false
    var queued: UInt64 = 0
    var held: UInt64 = 0
    var isAwaited = false
  }

  private static let planeLimit = Int(nightjar_VIDEO_MAX_PLANES)

  /// Asks the driver for `wanted` buffers of the format that is set, and maps as many as it gives.
  ///
  /// - Throws: ``CaptureError``; then nothing is left behind.
  init(device: V4L2Device, format: DriverFormat, wanted: Int) throws(CaptureError) {
    var request = v4l2_requestbuffers()
    request.count = UInt32(clamping: wanted)
    request.type = device.bufferType
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try device.require("VIDIOC_REQBUFS", nightjar_VIDIOC_REQBUFS, &request)
    let granted = min(Int(request.count), Int(nightjar_VIDEO_MAX_FRAME))
    guard granted >= Self.driverShare else {
      throw .implausible(path: device.path, "gives only \(granted) buffers: no memory for a picture of this size?")
    }
    let event = nightjar_eventfd()
    guard event >= 0 else { throw .refused(path: device.path, call: "eventfd", errorNumber: errno) }
    self.device = device
    count = granted
    planeCount = format.planes.count
    returned = event
    maps = .allocate(capacity: granted * format.planes.count)
    dequeuePlanes = .allocate(capacity: Self.planeLimit)
    dequeuePlanes.initialize(repeating: v4l2_plane(), count: Self.planeLimit)
    enqueuePlanes = .allocate(capacity: Self.planeLimit)
    enqueuePlanes.initialize(repeating: v4l2_plane(), count: Self.planeLimit)
    waiting = .allocate(capacity: 2)
    waiting.initialize(repeating: pollfd(fd: event, events: Int16(POLLIN), revents: 0), count: 2)
    super.init()
    // From here on `deinit` frees everything, so that the first failure may simply be thrown.
    for index in 0..<granted { try map(index, format) }
  }

  deinit {
    maps.deinitialize(count: mapped)
    maps.deallocate()
    dequeuePlanes.deallocate()
    enqueuePlanes.deallocate()
    waiting.deallocate()
    close(returned)
  }

  /// The fewest bytes that any buffer has of plane number `plane`.
  func leastByteCount(plane: Int) -> Int {
    var least = Int.max
    for index in 0..<count { least = min(least, maps[index * planeCount + plane].byteCount) }
    return least
  }

  /// Where plane `plane` of buffer `index` starts.
  func base(index: Int, plane: Int) -> UnsafeMutablePointer<UInt8> {
    maps[index * planeCount + plane].base
  }

  /// Gives the driver all buffers that no frame holds, and starts the stream.
  func start() throws(CaptureError) {
    let (call, errorNumber) = state.withLock { state -> (String, CInt) in
      guard !state.isStreaming else { return ("", 0) }
      let refusal = enqueueIdle(&state)
      if refusal != 0 { return ("VIDIOC_QBUF", refusal) }
      var type = CInt(bitPattern: device.bufferType)
      let errorNumber = device.control(nightjar_VIDIOC_STREAMON, &type)
      state.isStreaming = errorNumber == 0
      return ("VIDIOC_STREAMON", errorNumber)
    }
    guard errorNumber == 0 else {
      stop()
      throw device.failure(call, errorNumber)
    }
  }

  /// Stops the stream; the driver lets go of all buffers. Those that frames hold stay as they are.
  func stop() {
    state.withLock { state in
      var type = CInt(bitPattern: device.bufferType)
      _ = device.control(nightjar_VIDIOC_STREAMOFF, &type)
      state.isStreaming = false
      state.queued = 0
    }
  }

  /// Takes a filled buffer from the driver; from then on it is held until ``recycle(slot:)``.
  ///
  /// - Returns: 0, or an `errno`: `EAGAIN` where none is filled.
  func dequeue(into buffer: inout DequeuedBuffer) -> CInt {
    var argument = v4l2_buffer()
    prepare(&argument, dequeuePlanes)
    let errorNumber = device.control(nightjar_VIDIOC_DQBUF, &argument)
    guard errorNumber == 0 else { return errorNumber }
    let index = Int(argument.index)
    guard index < count else { return EPROTO }
    state.withLock { state in
      state.queued &= ~(1 << UInt64(index))
      state.held |= 1 << UInt64(index)
    }
    buffer.index = index
    buffer.flags = argument.flags
    buffer.field = argument.field
    buffer.sequence = argument.sequence
    buffer.timestamp = MediaTime(
      nanoseconds: Int64(argument.timestamp.tv_sec) &* 1_000_000_000 &+ Int64(argument.timestamp.tv_usec) &* 1000)
    buffer.contents.0 = contents(index, 0, argument)
    buffer.contents.1 = contents(index, 1, argument)
    buffer.contents.2 = contents(index, 2, argument)
    return 0
  }

  /// Gives a buffer back to the driver; called when the frame in it ends.
  override func recycle(slot: Int) {
    let isAwaited = state.withLock { state in
      state.held &= ~(1 << UInt64(slot))
      // What the driver refuses now, it is offered again with the next buffer.
      if state.isStreaming { _ = enqueueIdle(&state) }
      defer { state.isAwaited = false }
      return state.isAwaited
    }
    guard isAwaited else { return }
    var one: UInt64 = 1
    _ = write(returned, &one, 8)
  }

  /// Whether a buffer may be taken without starving the driver.
  func hasSpare() -> Bool {
    state.withLock { $0.queued.nonzeroBitCount > Self.driverShare }
  }

  /// Waits until a frame gives its buffer back, for `patience` at most, or for `interrupt`.
  func awaitReturn(interrupt: borrowing Interrupt, patience: MediaTime) {
    let mustWait = state.withLock { state in
      state.isAwaited = state.queued.nonzeroBitCount <= Self.driverShare
      return state.isAwaited
    }
    guard mustWait else { return }
    waiting[1].fd = interrupt.fileDescriptor
    _ = nightjar_poll(waiting, 2, patience.nanoseconds)
    var count: UInt64 = 0
    if waiting[0].revents != 0 { _ = read(returned, &count, 8) }
  }

  private func map(_ index: Int, _ format: DriverFormat) throws(CaptureError) {
    var argument = v4l2_buffer()
    prepare(&argument, dequeuePlanes)
    argument.index = UInt32(index)
    try device.require("VIDIOC_QUERYBUF", nightjar_VIDIOC_QUERYBUF, &argument)
    if device.identity.isMultiPlanar, Int(argument.length) != planeCount {
      throw .implausible(path: device.path, "gives buffers of \(argument.length) planes instead of \(planeCount)")
    }
    for plane in 0..<planeCount {
      let (offset, length) =
        device.identity.isMultiPlanar
        ? (dequeuePlanes[plane].m.mem_offset, Int(dequeuePlanes[plane].length))
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

  /// Gives the driver every idle buffer; 0, or the first `errno` of those that it refused.
  private func enqueueIdle(_ state: inout State) -> CInt {
    var refusal: CInt = 0
    for index in 0..<count where (state.queued | state.held) & (1 << UInt64(index)) == 0 {
      let errorNumber = enqueue(index)
      if errorNumber == 0 {
        state.queued |= 1 << UInt64(index)
      } else if refusal == 0 {
        refusal = errorNumber
      }
    }
    return refusal
  }

  private func enqueue(_ index: Int) -> CInt {
    var argument = v4l2_buffer()
    prepare(&argument, enqueuePlanes)
    argument.index = UInt32(index)
    return device.control(nightjar_VIDIOC_QBUF, &argument)
  }

  private func prepare(_ argument: inout v4l2_buffer, _ planes: UnsafeMutablePointer<v4l2_plane>) {
    argument.type = device.bufferType
    argument.memory = V4L2_MEMORY_MMAP.rawValue
    guard device.identity.isMultiPlanar else { return }
    planes.update(repeating: v4l2_plane(), count: Self.planeLimit)
    argument.m.planes = planes
    argument.length = UInt32(Self.planeLimit)
  }

  /// The used bytes of a plane, as the driver gives them but never beyond the map.
  private func contents(_ index: Int, _ plane: Int, _ argument: v4l2_buffer) -> DequeuedPlane {
    guard plane < planeCount else { return DequeuedPlane() }
    let capacity = maps[index * planeCount + plane].byteCount
    var start = 0
    var end = Int(argument.bytesused)
    if device.identity.isMultiPlanar {
      start = min(Int(dequeuePlanes[plane].data_offset), capacity)
      end = Int(dequeuePlanes[plane].bytesused)
    }
    end = min(end, capacity)
    return DequeuedPlane(base: base(index: index, plane: plane) + start, byteCount: max(0, end - start))
  }
}
