import Capture
import Foundation
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// The event of a camera, as a copyable value.
private enum Told {
  case frame(Parcel)
  case dropped(DropCause, Int)
  case nothing
}

/// The camera's own buffers, on a real kernel. The suite's name ends as those of the other tests for the rig do.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct CameraBufferRigTests {
  private static func camera(
    _ index: Int, _ format: String = "NV12", size: PictureSize = PictureSize(width: 640, height: 480)
  ) throws -> V4L2Camera {
    try V4L2Camera(
      path: try Vivid.node(index),
      request: FormatRequest(size: size, frameRate: .thirty, format: PixelFormat(format)))
  }

  private static func next(_ camera: V4L2Camera, _ interrupt: borrowing Interrupt) throws -> Told {
    switch try camera.next(interrupt: interrupt) {
    case .frame(let frame): .frame(Parcel(frame))
    case .dropped(let cause, let count): .dropped(cause, count)
    case .idle: .nothing
    case .ended: .nothing
    }
  }

  private static func frames(_ count: Int, of camera: V4L2Camera) throws -> [Parcel] {
    let interrupt = try Interrupt()
    var frames: [Parcel] = []
    let deadline = Date(timeIntervalSinceNow: 30)
    while frames.count < count, Date() < deadline {
      if case .frame(let frame) = try next(camera, interrupt) { frames.append(frame) }
    }
    try #require(frames.count == count)
    return frames
  }

  /// Returns the number of DMA-BUFs that this process has open.
  private static func openBuffers() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { entry in
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(entry)")
      return target?.contains("dmabuf") == true
    }
  }

  /// Returns `true` if the picture that the descriptor shows is the one in the frame's memory.
  private static func isSame(_ planes: NV12Planes, _ buffer: DMABuffer) -> Bool {
    guard lseek(buffer.fileDescriptor, 0, SEEK_END) >= off_t(buffer.byteCount),
      let mapped = mmap(nil, buffer.byteCount, PROT_READ, MAP_SHARED, buffer.fileDescriptor, 0), mapped != MAP_FAILED
    else { return false }
    defer { munmap(mapped, buffer.byteCount) }
    // The last row ends within the buffer.
    let end = buffer.chromaOffset + buffer.chromaStride * (planes.size.height / 2 - 1) + planes.size.width
    guard end <= buffer.byteCount else { return false }
    let isLumaSame = (0..<planes.size.height).allSatisfy { row in
      memcmp(
        mapped + buffer.lumaOffset + row * buffer.lumaStride, planes.luma + row * planes.lumaStride, planes.size.width)
        == 0
    }
    return isLumaSame
      && (0..<planes.size.height / 2).allSatisfy { row in
        memcmp(
          mapped + buffer.chromaOffset + row * buffer.chromaStride, planes.chroma + row * planes.chromaStride,
          planes.size.width) == 0
      }
  }

  /// Colour bars: neither one flat colour nor nothing at all.
  private static func isPicture(_ planes: NV12Planes) -> Bool {
    let row = UnsafeBufferPointer(start: planes.luma + 400 * planes.lumaStride, count: planes.size.width)
    return (row.max() ?? 0) > 150 && (row.min() ?? 255) < 60
  }

  // By the single- and the multi-planar interface.
  @Test(arguments: [0, 1])
  func `an exported buffer shows the same picture as the frame, in every buffer`(index: Int) throws {
    let camera = try Self.camera(index)
    #expect(camera.format.conversion == "no copy")
    try camera.start()
    var numbers: [UInt64: CInt] = [:]
    for _ in 0..<5 {
      // Held together, so that each lies in another buffer.
      let frames = try Self.frames(3, of: camera)
      var together: Set<UInt64> = []
      for frame in frames {
        let buffer = try #require(frame.look { $1 } ?? nil)
        #expect(frame.look { planes, _ in Self.isSame(planes, buffer) && Self.isPicture(planes) } == true)
        #expect(fcntl(buffer.fileDescriptor, F_GETFD) & FD_CLOEXEC != 0)
        // A buffer keeps its number and descriptor.
        #expect(numbers[buffer.identifier] ?? buffer.fileDescriptor == buffer.fileDescriptor)
        numbers[buffer.identifier] = buffer.fileDescriptor
        together.insert(buffer.identifier)
      }
      #expect(together.count == 3)
      for frame in frames { frame.end() }
    }
    #expect((3...V4L2BufferQueue.zeroCopyCount).contains(numbers.count))
    #expect(try Self.openBuffers() == V4L2BufferQueue.zeroCopyCount)
    camera.stop()
    #expect(try Self.openBuffers() == 0)
  }

  @Test func `planes in two buffers, and converted pictures, are not offered to hardware`() throws {
    for (index, format) in [(1, "NM12"), (0, "YUYV")] {
      let camera = try Self.camera(index, format)
      try camera.start()
      for frame in try Self.frames(3, of: camera) {
        #expect(frame.look { planes, buffer in buffer == nil && Self.isPicture(planes) } == true)
      }
      #expect(try Self.openBuffers() == 0)
      camera.stop()
    }
  }

  @Test func `the camera is free for others once the last frame has ended, and starts again`() throws {
    let camera = try Self.camera(0)
    try camera.start()
    let frame = try Self.frames(1, of: camera)[0]
    let first = try #require(frame.look { $1 } ?? nil)
    camera.stop()
    camera.stop()
    // A frame is out: its memory is there, and so the driver refuses others.
    #expect(throws: CaptureError.self) { try Self.camera(0, size: PictureSize(width: 320, height: 180)) }
    #expect(frame.look { planes, _ in Self.isSame(planes, first) && Self.isPicture(planes) } == true)
    frame.end()
    #expect(try Self.openBuffers() == 0)
    do {
      let other = try Self.camera(0, size: PictureSize(width: 320, height: 180))
      try other.start()
      #expect(try Self.frames(1, of: other)[0].look { planes, _ in planes.size.width } == 320)
      // Now it is the first one that is refused.
      #expect(throws: CaptureError.self) { try camera.start() }
      other.stop()
    }
    // The other one left another format behind.
    try camera.start()
    let again = try Self.frames(2, of: camera)
    for frame in again {
      let buffer = try #require(frame.look { $1 } ?? nil)
      #expect(buffer.identifier > first.identifier)
      #expect(
        frame.look { planes, _ in
          planes.size.width == 640 && Self.isSame(planes, buffer) && Self.isPicture(planes)
        } == true)
    }
    camera.stop()
    // A start while frames are out goes on with the same buffers.
    try camera.start()
    #expect(again[0].look { planes, _ in Self.isPicture(planes) } == true)
    again[0].end()
    again[1].end()
    #expect(try Self.frames(3, of: camera).count == 3)
    camera.stop()
    #expect(try Self.openBuffers() == 0)
  }

  @Test func `frames outlive the camera object`() throws {
    var frames: [Parcel] = []
    do {
      let camera = try Self.camera(0)
      try camera.start()
      frames = try Self.frames(2, of: camera)
    }
    for frame in frames {
      let buffer = try #require(frame.look { $1 } ?? nil)
      #expect(frame.look { planes, _ in Self.isSame(planes, buffer) } == true)
      frame.end()
    }
    #expect(try Self.openBuffers() == 0)
    _ = try Self.camera(0, size: PictureSize(width: 320, height: 180))
  }

  @Test func `where buffers cannot be exported, frames come without a descriptor, and none leaks`() throws {
    let interrupt = try Interrupt()
    var limit = rlimit()
    try #require(getrlimit(CInt(RLIMIT_NOFILE.rawValue), &limit) == 0)
    var narrow = limit
    narrow.rlim_cur = 256
    try #require(setrlimit(CInt(RLIMIT_NOFILE.rawValue), &narrow) == 0)
    var taken: [CInt] = []
    while case let copy = dup(1), copy >= 0 { taken.append(copy) }
    // One for the device, two for its first two buffers.
    for _ in 0..<3 { close(taken.removeLast()) }
    let camera = Result { try Self.camera(0) }
    for descriptor in taken { close(descriptor) }
    #expect(setrlimit(CInt(RLIMIT_NOFILE.rawValue), &limit) == 0)

    try camera.get().start()
    #expect(try Self.openBuffers() == 0)
    var frames = 0
    let deadline = Date(timeIntervalSinceNow: 30)
    while frames < 10, Date() < deadline {
      guard case .frame(let frame) = try Self.next(try camera.get(), interrupt) else { continue }
      #expect(frame.look { planes, buffer in buffer == nil && Self.isPicture(planes) } == true)
      frames += 1
    }
    #expect(frames == 10)
    #expect(try camera.get().format.conversion == "no copy")
    try camera.get().stop()
  }

  @Test func `a holder of too many frames gets copies, then no frames, and the driver continues`() throws {
    let camera = try Self.camera(0)
    try camera.start()
    let lent = V4L2BufferQueue.zeroCopyCount - V4L2BufferQueue.driverShare
    let frames = try Self.frames(lent + V4L2Camera.reserveCount, of: camera)
    for (index, frame) in frames.enumerated() {
      #expect(frame.look { planes, buffer in (buffer != nil) == (index < lent) && Self.isPicture(planes) } == true)
    }
    let interrupt = try Interrupt()
    var exhausted = 0
    let deadline = Date(timeIntervalSinceNow: 30)
    while exhausted < 5, Date() < deadline {
      switch try Self.next(camera, interrupt) {
      case .frame: Issue.record("a frame out of nowhere")
      case .dropped(.poolExhausted, let count): exhausted += count
      case .dropped, .nothing: break
      }
    }
    #expect(exhausted >= 5)
    for frame in frames { frame.end() }
    #expect(try Self.frames(2, of: camera).allSatisfy { $0.look { $1 != nil } == true })
    camera.stop()
  }

  /// A consumer that needs longer than a frame interval for each picture, in the camera's own buffers and converted.
  @Test(arguments: ["NV12", "YUYV"])
  func `a slow consumer gets the newest picture, and those before it are counted`(format: String) throws {
    let camera = try Self.camera(0, format)
    let interrupt = try Interrupt()
    try camera.start()
    // The first call of a round takes all that is filled, so the next round gives what is filled since. The oldest of four buffers would
    // be of four rounds before. The camera's time is that of a picture's begin. A pause of this machine makes a round longer, and no
    // picture older than that.
    var (round, rounds, overtaken): (Instant?, [Instant], Int) = (nil, [], 0)
    let deadline = Date(timeIntervalSinceNow: 60)
    while rounds.count < 10, Date() < deadline {
      let begin = round ?? .now()
      round = begin
      switch try camera.next(interrupt: interrupt) {
      case .frame(let frame):
        if let before = rounds.last {
          #expect(frame.captured + FrameRate.thirty.interval > before, "round \(rounds.count)")
        }
        rounds.append(begin)
        round = nil
        usleep(170_000)
      case .dropped(let cause, let count): if cause == .captureLate { overtaken += count }
      case .idle: break
      case .ended: break
      }
    }
    camera.stop()
    #expect(rounds.count == 10)
    #expect(overtaken >= 10)
  }

  @Test func `frames come back from many threads while the camera goes on`() throws {
    let camera = try Self.camera(0)
    for _ in 0..<3 {
      try camera.start()
      let interrupt = try Interrupt()
      let threads = DispatchGroup()
      var frames = 0
      let damaged = Atomic<Int>(0)
      let deadline = Date(timeIntervalSinceNow: 40)
      while frames < 60, Date() < deadline {
        guard case .frame(let frame) = try Self.next(camera, interrupt) else { continue }
        frames += 1
        let pause = UInt32.random(in: 0...90_000)
        DispatchQueue.global().async(group: threads) {
          usleep(pause)
          let isWhole = frame.look { planes, buffer in
            Self.isPicture(planes) && (buffer.map { Self.isSame(planes, $0) } ?? true)
          }
          if isWhole != true { damaged.wrappingAdd(1, ordering: .relaxed) }
          frame.end()
        }
      }
      #expect(frames == 60)
      // Some end after the stop, the last of them frees the buffers.
      camera.stop()
      threads.wait()
      #expect(damaged.load(ordering: .relaxed) == 0)
      #expect(try Self.openBuffers() == 0)
    }
  }

  @Test func `the last frame may end at any moment between a stop and the next start`() throws {
    let camera = try Self.camera(0)
    let threads = DispatchGroup()
    var numbers: Set<UInt64> = []
    for round in 0..<30 {
      try camera.start()
      for frame in try Self.frames(2, of: camera) {
        let number = frame.look { planes, buffer in Self.isPicture(planes) ? buffer?.identifier : nil } ?? nil
        numbers.insert(try #require(number))
        let pause = UInt32.random(in: 0...4_000)
        DispatchQueue.global().async(group: threads) {
          usleep(pause)
          frame.end()
        }
      }
      camera.stop()
      // Sometimes after the last frame, sometimes before, sometimes at once.
      usleep(UInt32(round % 3) * 2_500)
    }
    threads.wait()
    #expect(numbers.count > V4L2BufferQueue.zeroCopyCount, "no buffer was allocated anew")
    #expect(try Self.openBuffers() == 0)
    // The object still exists, and the device is free.
    _ = try Self.camera(0, size: PictureSize(width: 320, height: 180))
  }

  @Test(arguments: [
    // 1: no signal. 4: a chosen one, of vivid's list.
    (["-c", "dv_timings_signal_mode=1"], nil),
    (["-c", "dv_timings=16", "-c", "dv_timings_signal_mode=4"], PictureSize(width: 1920, height: 1080)),
  ])
  func `another signal at the input ends the stream with the reason`(change: [String], expected: PictureSize?) throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    // Input 3 is HDMI.
    try Vivid.control(node, ["-i", "3"], in: directory)
    defer {
      try? Vivid.control(node, ["-c", "dv_timings_signal_mode=0"], in: directory)
      try? Vivid.control(node, ["--set-dv-bt-timings", "index=9", "-i", "0"], in: directory)
    }
    let request = FormatRequest(format: PixelFormat("NV12"))
    let camera = try V4L2Camera(path: node, request: request)
    try camera.start()
    _ = try Self.frames(2, of: camera)
    // The same size at another rate: the pictures stay what they are.
    try Vivid.control(node, ["-c", "dv_timings=8", "-c", "dv_timings_signal_mode=4"], in: directory)
    _ = try Self.frames(5, of: camera)
    try Vivid.control(node, change, in: directory)
    let interrupt = try Interrupt()
    let error = try #require(
      #expect(throws: CaptureError.self) {
        let deadline = Date(timeIntervalSinceNow: 30)
        while Date() < deadline { _ = try Self.next(camera, interrupt) }
      })
    guard case .sourceChanged(node, _, expected) = error else {
      Issue.record("\(error)")
      return
    }
    camera.stop()
    guard let expected else { return }
    // What the message says: a new start takes the new signal.
    let next = try V4L2Camera(path: node, request: request)
    try next.start()
    _ = try Self.frames(5, of: next)
    let timings = try Subprocess.run(["v4l2-ctl", "-d", node, "--get-dv-timings"], in: directory)
    let width = timings.outputText.split(separator: "\n").map { $0.components(separatedBy: ": ") }
      .first { $0[0].trimmingCharacters(in: .whitespaces) == "Active width" }?.last
    #expect(width == "\(expected.width)", "\(timings.outputText)")
    next.stop()
  }

  @Test func `a driver's event without a change does not end the stream`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    let camera = try Self.camera(0)
    try camera.start()
    _ = try Self.frames(2, of: camera)
    // vivid sends the event for every colour control: here for one that says nothing about Y'CbCr pictures.
    try Vivid.set(node, "hsv_encoding=1", in: directory)
    _ = try Self.frames(5, of: camera)
    try Vivid.set(node, "hsv_encoding=0", in: directory)
    _ = try Self.frames(5, of: camera)
    // Other colours are a change: the stream says in its parameter sets what they are.
    try Vivid.set(node, "colorspace=1", in: directory)
    defer { try? Vivid.set(node, "colorspace=2", in: directory) }
    let interrupt = try Interrupt()
    #expect(throws: CaptureError.self) {
      let deadline = Date(timeIntervalSinceNow: 30)
      while Date() < deadline { _ = try Self.next(camera, interrupt) }
    }
    camera.stop()
  }
}
