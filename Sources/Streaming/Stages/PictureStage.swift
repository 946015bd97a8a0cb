import Glibc
package import Media
package import PixelConversion
package import Platform
import Synchronization

/// Makes JPEG of the newest frame for viewers of pictures, on a thread of its own. The thread exists only while there
/// is such a viewer, or was one a moment ago. All viewers that wait share one JPEG.
///
/// The encode stage offers every frame after it has encoded the frame, or skipped it unwatched. While no viewer waits,
/// that costs one load; else the frame is copied, unless the picture before is still being made.
package final class PictureStage: LiveStage, @unchecked Sendable {
  // Sendable: everything is under the monitor but the atomic and `room`'s memory, whose owner `state` names.

  /// The most viewers at a time.
  package static let viewerLimit = 16
  /// The time for which memory and thread are kept for the next viewer.
  private static let rest = Duration(seconds: 10)

  /// The demand that sources read.
  package let demand = PictureDemand()

  private let capacity: Int
  private let makeEncoder: @Sendable () throws(ConversionError) -> JPEGEncoder
  private let isDue = Atomic(false)
  private let monitor = Monitor()
  private var state = State.absent
  private var room: PictureRoom?
  private var viewers: [UInt64: LiveViewerStatistics] = [:]
  /// The viewers for whom a camera need not keep its own pictures.
  private var samplers: Set<UInt64> = []
  private var waiting: [Waiting] = []
  private var lastNumber: UInt64 = 0
  private var figures = PictureStatistics()
  private var isClosed = false
  /// `true` if a picture of the camera's could not be passed on: then none is any more.
  private var codesAll = false

  private enum State {
    /// There is no thread, or it is getting ready.
    case absent, starting
    /// Room for a frame; a frame that is being copied; a frame that is present; a frame that is being coded.
    case idle, copying, ready, coding
  }

  /// A viewer that waits for a picture.
  fileprivate struct Waiting {
    let viewer: UInt64
    /// The earliest time at which the picture may have been taken.
    let since: Instant
    let deadline: Instant
    let continuation: CheckedContinuation<LivePicture, any Error>
  }

  /// Creates a stage for frames of up to `size`.
  package init(
    size: PictureSize,
    makeEncoder: @escaping @Sendable () throws(ConversionError) -> JPEGEncoder = { () throws(ConversionError) in
      try JPEGEncoder()
    }
  ) {
    self.makeEncoder = makeEncoder
    // Rows are copied without their padding.
    capacity = size.pixels * 3 / 2
  }

  // MARK: The encode stage's side

  /// `true` if a viewer waits for a picture.
  package var isAwaited: Bool { isDue.load(ordering: .relaxed) }

  /// Copies `frame` if a viewer waits for one. Never waits for the picture before.
  package func offer(_ frame: borrowing Frame) {
    // A viewer of JPEG makes the camera deliver samples, so a picture of samples follows a coded one.
    guard isAwaited, frame.coded == nil else { return }
    take(frame)
  }

  private func take(_ frame: borrowing Frame) {
    let captured = frame.captured
    // No frame is larger than the source's.
    guard frame.planes.size.pixels * 3 / 2 <= capacity else { return }
    guard let room = claim(captured) else { return }
    // A rotated or scaled frame has none.
    if !codesAll, let compressed = frame.compressed {
      room.compressed = compressed
      room.captured = captured
      room.isPlaceholder = frame.isPlaceholder
    } else {
      room.store(frame)
    }
    monitor.locked {
      state = .ready
      monitor.signal()
    }
  }

  private func claim(_ captured: Instant) -> PictureRoom? {
    monitor.locked {
      guard waiting.contains(where: { $0.since <= captured }) else { return nil }
      guard case .idle = state else {
        // While the thread gets ready there is no picture before.
        if state != .starting { figures.skipped += 1 }
        return nil
      }
      state = .copying
      return room
    }
  }

  // MARK: The viewers' side

  /// Admits a viewer.
  ///
  /// - Parameter demands: `false` takes pictures from samples alone: a camera keeps no pictures of its own for the viewer,
  ///   and H.264 of a camera passes on, without pictures.
  /// - Throws: ``LiveViewerError``, `SystemFailure` where the system has no thread left.
  package func admit(_ name: String, peer: ViewerPeer? = nil, isSnapshot: Bool, demands: Bool = true) throws -> UInt64 {
    try monitor.locked {
      guard !isClosed else { throw LiveViewerError.ended }
      guard viewers.count < Self.viewerLimit else { throw LiveViewerError.tooMany(.pictures, limit: Self.viewerLimit) }
      try startThread()
      lastNumber += 1
      viewers[lastNumber] = LiveViewerStatistics(
        id: lastNumber, name: name, peer: peer, isSnapshot: isSnapshot)
      if !demands { samplers.insert(lastNumber) }
      demand.set(viewers.count > samplers.count)
      return lastNumber
    }
  }

  /// Starts a thread, unless there is one; under the monitor.
  private func startThread() throws {
    guard case .absent = state else { return }
    try NamedThread("nj-picture") { [self] in run() }.detach()
    state = .starting
  }

  /// Removes a viewer.
  package func dismiss(_ viewer: UInt64) {
    let ended = monitor.locked {
      viewers[viewer] = nil
      samplers.remove(viewer)
      demand.set(viewers.count > samplers.count)
      // The thread waits without a deadline as long as there is a viewer.
      monitor.signal()
      return takeOut { $0.viewer == viewer }
    }
    ended.end(LiveViewerError.ended)
  }

  /// Returns the next picture that was taken after `since`.
  ///
  /// - Throws: ``LiveViewerError``, `ConversionError`, `SystemFailure` where the system has no thread left.
  package func next(for viewer: UInt64, since: Instant, until deadline: Instant) async throws -> LivePicture {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let refusal: (any Error)? = monitor.locked {
          guard !isClosed, viewers[viewer] != nil, !Task.isCancelled else { return LiveViewerError.ended }
          // There is no thread where the former one could not get ready.
          do { try startThread() } catch { return error }
          waiting.append(
            Waiting(viewer: viewer, since: since, deadline: deadline, continuation: continuation))
          isDue.store(true, ordering: .relaxed)
          // Its deadline may be the next.
          monitor.signal()
          return nil
        }
        if let refusal { continuation.resume(throwing: refusal) }
      }
    } onCancel: {
      monitor.locked { takeOut { $0.viewer == viewer } }.end(LiveViewerError.ended)
    }
  }

  /// Notes what was sent to a viewer.
  func noteSent(_ pictures: Int, bytes: Int, to viewer: UInt64) {
    monitor.locked { viewers[viewer]?.noteSent(pictures, bytes: bytes) }
  }

  /// The statistics so far, with the present viewers.
  package var statistics: PictureStatistics {
    monitor.locked {
      var figures = figures
      figures.viewers = viewers.values.sorted { $0.id < $1.id }
      return figures
    }
  }

  /// Ends all waiting, and the thread. Any number of times.
  package func close() {
    let ended = monitor.locked {
      isClosed = true
      demand.set(false)
      monitor.signal()
      return takeOut { _ in true }
    }
    ended.end(LiveViewerError.ended)
  }

  /// Removes the viewers that `isMeant` selects from those that wait, and returns them; under the monitor.
  ///
  /// The caller answers them once the monitor is free. To resume a task takes the lock of its state, and the thread
  /// that cancels the task holds that lock while its handler waits for the monitor.
  private func takeOut(_ isMeant: (Waiting) -> Bool) -> [Waiting] {
    let meant = waiting.filter(isMeant)
    waiting.removeAll(where: isMeant)
    isDue.store(!waiting.isEmpty, ordering: .relaxed)
    return meant
  }

  // MARK: The thread

  private func run() {
    // On Linux, for this thread alone: the stream goes before pictures of it. Where that fails, the thread goes on
    // without.
    _ = setpriority(CInt(PRIO_PROCESS.rawValue), 0, 5)
    let room = PictureRoom(capacity: capacity)
    let encoder: JPEGEncoder
    do throws(ConversionError) {
      encoder = try makeEncoder()
    } catch {
      let ended = monitor.locked {
        // The next viewer that waits starts another thread.
        state = .absent
        return takeOut { _ in true }
      }
      return ended.end(error)
    }
    monitor.locked {
      self.room = room
      state = .idle
    }
    while waitForFrame() {
      let isPassed = room.compressed != nil
      let result = Result { () throws(ConversionError) in try room.jpeg(encoder) }
      room.compressed = nil
      deliver(result, of: room, isPassed: isPassed)
    }
  }

  /// Waits for a frame. Returns `false` if the thread is to end.
  private func waitForFrame() -> Bool {
    var end = Instant.now() + Self.rest
    while true {
      let (late, isThere) = look(&end)
      late.end(LiveViewerError.late(.pictures))
      if let isThere { return isThere }
    }
  }

  /// Waits until something happens, or a viewer has waited too long. `isThere` is nil where it is to be called again.
  /// The thread ends at `end`, which is put off while there is a viewer.
  private func look(_ end: inout Instant) -> (late: [Waiting], isThere: Bool?) {
    monitor.locked {
      let now = Instant.now()
      let late = takeOut { $0.deadline <= now }
      if case .ready = state {
        state = .coding
        return (late, true)
      }
      if !viewers.isEmpty { end = now + Self.rest }
      // A frame that is being copied is coming.
      if isClosed || now >= end, case .idle = state {
        room = nil
        state = .absent
        return (late, false)
      }
      if late.isEmpty { _ = monitor.wait(until: waiting.map(\.deadline).reduce(end, min)) }
      return (late, nil)
    }
  }

  private func deliver(_ result: Result<[UInt8]?, ConversionError>, of room: PictureRoom, isPassed: Bool) {
    // Once the state is idle, the room is the encode stage's.
    let (captured, isPlaceholder) = (room.captured, room.isPlaceholder)
    let answered: [Waiting] = monitor.locked {
      state = .idle
      switch result {
      case .success(_?):
        if isPassed { figures.passed += 1 } else { figures.coded += 1 }
      case .success(nil):
        // The picture could be decoded, but its markers are not those of T.81: the next one is coded here.
        codesAll = true
        return []
      case .failure: break
      }
      return takeOut { $0.since <= captured }
    }
    switch result {
    case .success(let bytes):
      let picture = LivePicture(bytes: bytes ?? [], captured: captured, isPlaceholder: isPlaceholder)
      for waiting in answered { waiting.continuation.resume(returning: picture) }
    case .failure(let error): answered.end(error)
    }
  }
}

extension [PictureStage.Waiting] {
  /// Fails every wait. Never under the monitor.
  fileprivate func end(_ error: any Error) {
    for waiting in self { waiting.continuation.resume(throwing: error) }
  }
}

/// Room for one frame on its way to JPEG.
private final class PictureRoom: @unchecked Sendable {
  // Sendable: the stage's state names its owner.
  private let memory: UnsafeMutablePointer<UInt8>
  private var size = PictureSize(width: 0, height: 0)
  private var color = ColorDescription.unspecified
  private var orientation = Orientation.upright
  /// The picture as its camera has compressed it. If it is present, there is no other copy here.
  var compressed: CompressedPicture?
  var captured = Instant.zero
  var isPlaceholder = false

  init(capacity: Int) {
    memory = .allocate(capacity: capacity)
    // Touched, so that the encode stage pays for no page fault.
    memory.initialize(repeating: 0, count: capacity)
  }

  deinit {
    memory.deallocate()
  }

  private var planes: NV12Planes {
    NV12Planes(
      size: size, luma: memory, lumaStride: size.width, chroma: memory + size.pixels, chromaStride: size.width)
  }

  func store(_ frame: borrowing Frame) {
    (size, color, orientation, captured) = (frame.planes.size, frame.color, frame.orientation, frame.captured)
    isPlaceholder = frame.isPlaceholder
    let source = frame.planes
    let target = planes
    for row in 0..<size.height {
      memcpy(target.luma + row * size.width, source.luma + row * source.lumaStride, size.width)
    }
    for row in 0..<size.height / 2 {
      memcpy(target.chroma + row * size.width, source.chroma + row * source.chromaStride, size.width)
    }
  }

  /// Returns a JPEG; nil where the camera's own bytes cannot be used.
  func jpeg(_ encoder: JPEGEncoder) throws(ConversionError) -> [UInt8]? {
    if let compressed { return JPEGStream.complete(compressed.bytes) }
    return try encoder.encode(planes, color: color, orientation: orientation)
  }
}
