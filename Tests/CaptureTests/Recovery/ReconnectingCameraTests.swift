import Capture
import Foundation
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// The stream without its camera.
@Suite struct ReconnectingCameraTests {
  private static let size = PictureSize(width: 96, height: 64)
  private static let lost = CaptureError.disconnected(path: "/dev/video9")
  private static let busy = CaptureError.refused(path: "/dev/video9", call: "VIDIOC_S_FMT", errorNumber: EBUSY)

  /// A source and what stands behind it.
  private final class Rig {
    let camera: ScriptedCamera
    let finder = ScriptedFinder()
    let source: ReconnectingCamera<ScriptedFinder>
    let interrupt: Interrupt

    init(survival: CameraSurvival = .onceStarted, wallClock: @escaping @Sendable () -> Int64 = WallTime.now) throws {
      camera = try ScriptedCamera("first")
      source = try ReconnectingCamera(
        camera, format: camera.format, name: camera.name, finder: finder, survival: survival, wallClock: wallClock)
      interrupt = try Interrupt()
    }
  }

  /// The next `count` frames; an error where a loss is told, or where there are none for long.
  private static func shots(
    _ count: Int, of source: some VideoSource, until isDone: (Shot) -> Bool = { _ in false }
  ) throws -> [Shot] {
    let interrupt = try Interrupt()
    var shots: [Shot] = []
    let deadline = Date(timeIntervalSinceNow: 30)
    while shots.count < count, Date() < deadline {
      guard case .frame(let frame) = try source.next(interrupt: interrupt) else { continue }
      shots.append(Shot(frame))
      if let last = shots.last, isDone(last) { return shots }
    }
    guard shots.count == count else { throw SystemFailure("too few pictures", errorNumber: ETIMEDOUT) }
    return shots
  }

  /// The lightest sample: of text, 220; the cameras here are darker for long.
  private static func isPlaceholder(_ shot: Shot) -> Bool { shot.luma.first == 40 }

  @Test func `frames are handed on in the camera's own memory, and nothing is told`() throws {
    let rig = try Rig()
    try rig.source.start()
    defer { rig.source.stop() }
    guard case .frame(let frame) = try rig.source.next(interrupt: rig.interrupt) else {
      throw SystemFailure("no frame", errorNumber: EIO)
    }
    // The pool that the camera owns has one frame less, and gets it back when it ends.
    #expect(rig.camera.pool.available == FramePool.defaultCapacity - 1)
    _ = consume frame
    #expect(rig.camera.pool.available == FramePool.defaultCapacity)
    #expect(rig.source.condition?.state == .live)
    #expect(rig.source.condition?.placeholderFrames == 0)
    #expect(rig.source.takeEvents().isEmpty)
  }

  @Test func `a camera that is unplugged is replaced without a gap, and taken again`() throws {
    let rig = try Rig()
    try rig.source.start()
    defer { rig.source.stop() }
    var shots = try Self.shots(3, of: rig.source)
    rig.camera.script.withLock { $0.failure = Self.lost }
    shots += try Self.shots(6, of: rig.source)
    #expect(shots[2...].dropFirst().allSatisfy(Self.isPlaceholder))
    #expect(rig.source.condition?.state == .disconnected)
    #expect(rig.source.condition?.losses == 1)
    #expect(eventually { rig.camera.stops.load(ordering: .relaxed) > 0 })

    let second = try ScriptedCamera("second")
    rig.finder.finding.withLock { $0 = .camera(second) }
    shots += try Self.shots(200, of: rig.source) { !Self.isPlaceholder($0) }
    shots += try Self.shots(2, of: rig.source)
    #expect(rig.source.condition?.state == .live)
    #expect(rig.source.condition?.reopenings == 1)
    #expect(rig.source.condition?.placeholderFrames ?? 0 >= 6)
    #expect(rig.finder.losses.load(ordering: .relaxed) == 1)

    let steps = zip(shots, shots.dropFirst()).map { $1.timestamp - $0.timestamp }
    #expect(steps.allSatisfy { $0 > .zero })
    // From the last picture to the first placeholder one interval; ten times that for a machine that is busy.
    #expect(steps[2] < FrameRate.thirty.interval * 30, "\(steps[2])")
    let events = rig.source.takeEvents()
    #expect(events.contains(.lost(reason: Self.lost.description)), "\(events)")
    #expect(
      events.contains {
        if case .found("second", false, let time) = $0 { return time > .zero }
        return false
      }, "\(events)")
    #expect(events.contains(.warning("odd: second")))
  }

  @Test func `a camera that is unplugged while its coding changes is told as lost, and found again`() throws {
    let rig = try Rig()
    // The camera delivers samples, and shall code again at once.
    rig.source.passOn(by: PassThrough(needsSamples: true, returnDelay: .milliseconds(50)) { _ in })
    try rig.source.start()
    defer { rig.source.stop() }
    _ = try Self.shots(200, of: rig.source, until: Self.isPlaceholder)
    #expect(eventually { rig.finder.looks.load(ordering: .relaxed) > 0 })
    // A placeholder comes when the patience with the change is over, and the next look finds nothing at the latest.
    var shots: [Shot] = []
    for _ in 0..<100 where rig.source.condition?.losses == 0 { shots += try Self.shots(1, of: rig.source) }
    #expect(shots.allSatisfy(Self.isPlaceholder))
    #expect(rig.source.condition?.state == .disconnected)
    #expect(rig.source.condition?.losses == 1)
    _ = try Self.shots(20, of: rig.source)
    let events = rig.source.takeEvents()
    #expect(events == [.lost(reason: "the camera: the camera was unplugged")], "\(events)")

    let second = try ScriptedCamera("second")
    rig.finder.finding.withLock { $0 = .camera(second) }
    _ = try Self.shots(300, of: rig.source) { !Self.isPlaceholder($0) }
    #expect(rig.source.condition?.reopenings == 1)
    #expect(
      rig.source.takeEvents().contains {
        if case .found("second", false, _) = $0 { return true }
        return false
      })
  }

  @Test func `a camera whose coding changes is not lost, however long it takes`() throws {
    let rig = try Rig()
    rig.source.passOn(by: PassThrough(needsSamples: true, returnDelay: .milliseconds(50)) { _ in })
    // It is there, and does not open.
    rig.finder.finding.withLock { $0 = .failure(Self.busy) }
    try rig.source.start()
    defer { rig.source.stop() }
    _ = try Self.shots(200, of: rig.source, until: Self.isPlaceholder)
    _ = try Self.shots(30, of: rig.source)
    #expect(rig.source.condition?.state == .waiting)
    #expect(rig.source.condition?.losses == 0)
  }

  @Test func `without placeholders the camera's failure ends the stream`() throws {
    let rig = try Rig(survival: .none)
    try rig.source.start()
    defer { rig.source.stop() }
    rig.camera.script.withLock { $0.failure = Self.lost }
    #expect(throws: CaptureError.self) { _ = try Self.shots(1, of: rig.source) }
  }

  @Test func `a camera that does not start at the beginning is an error as before`() throws {
    let rig = try Rig()
    rig.camera.script.withLock {
      $0.startFailure = CaptureError.refused(path: "/dev/video9", call: "VIDIOC_STREAMON", errorNumber: ENOSPC)
    }
    #expect(throws: CaptureError.self) { try rig.source.start() }
    rig.source.stop()
  }

  @Test func `one that does not start is looked for where the stream was to wait`() throws {
    let rig = try Rig(survival: .always)
    rig.camera.script.withLock {
      $0.startFailure = CaptureError.refused(path: "/dev/video9", call: "VIDIOC_STREAMON", errorNumber: ENOSPC)
    }
    rig.finder.finding.withLock { $0 = .camera(rig.camera) }
    try rig.source.start()
    defer { rig.source.stop() }
    #expect(try Self.shots(3, of: rig.source).allSatisfy(Self.isPlaceholder))
    #expect(rig.source.condition?.state == .failed)
    rig.camera.script.withLock { $0.startFailure = nil }
    _ = try Self.shots(900, of: rig.source) { !Self.isPlaceholder($0) }
    #expect(rig.source.condition?.state == .live)
  }

  @Test func `a stream may wait for its first camera`() throws {
    let finder = ScriptedFinder()
    let first = try ScriptedCamera("late")
    let source = try ReconnectingCamera(waitingFor: "late", format: first.format, finder: finder)
    try source.start()
    defer { source.stop() }
    #expect(try Self.shots(3, of: source).allSatisfy(Self.isPlaceholder))
    #expect(source.condition?.state == .waiting)
    finder.finding.withLock { $0 = .camera(first) }
    _ = try Self.shots(200, of: source) { !Self.isPlaceholder($0) }
    let condition = try #require(source.condition)
    #expect(condition.state == .live && condition.losses == 0 && condition.reopenings == 0)
  }

  @Test func `the reason why a camera does not open is reported once, and shown without private details`() throws {
    let rig = try Rig()
    try rig.source.start()
    defer { rig.source.stop() }
    let holder = DeviceHolder(processID: 77, name: "secret")
    rig.finder.finding.withLock { $0 = .failure(CaptureError.busy(path: "/dev/video9", holders: [holder])) }
    rig.camera.script.withLock { $0.failure = Self.lost }
    var told: [CameraEvent] = []
    let interrupt = try Interrupt()
    #expect(
      try eventually {
        if case .frame = try rig.source.next(interrupt: interrupt) {}
        told += rig.source.takeEvents()
        return rig.source.condition?.obstacle != nil && rig.finder.looks.load(ordering: .relaxed) > 6
      })
    told += rig.source.takeEvents()
    let refusals = told.filter { if case .refused = $0 { true } else { false } }
    let busy = CaptureError.busy(path: "/dev/video9", holders: [holder])
    #expect(
      refusals.map(\.description) == [
        "camera not opened: /dev/video9 is in use by secret (process 77): end it, or choose another camera; nightjar "
          + "tries again"
      ], "\(told)")
    #expect(busy.remark == "in use by another program" && holder.description == "secret (process 77)")
  }

  @Test func `placeholders and returning cameras have the requested orientation`() throws {
    let rig = try Rig()
    try rig.source.prepareTurning()
    try rig.source.start()
    defer { rig.source.stop() }
    rig.camera.script.withLock { $0.failure = Self.lost }
    _ = try Self.shots(2, of: rig.source)
    rig.source.orient(Orientation(.quarter))
    #expect(try Self.shots(2, of: rig.source).last?.size == PictureSize(width: 64, height: 96))
    #expect(rig.source.orientation == Orientation(.quarter) && rig.source.turningFailure == nil)
    let second = try ScriptedCamera("second")
    rig.finder.finding.withLock { $0 = .camera(second) }
    #expect(
      try eventually { () throws -> Bool in
        _ = try Self.shots(1, of: rig.source)
        return rig.source.condition?.state == .live
      })
    #expect(second.orientation == Orientation(.quarter))
  }

  @Test func `a camera of another size is scaled to the stream's`() throws {
    let rig = try Rig()
    try rig.source.start()
    defer { rig.source.stop() }
    rig.camera.script.withLock { $0.failure = Self.lost }
    _ = try Self.shots(1, of: rig.source)
    let second = try ScriptedCamera("square", size: PictureSize(width: 128, height: 128))
    rig.finder.finding.withLock { $0 = .camera(second) }
    let last = try #require(try Self.shots(300, of: rig.source) { !Self.isPlaceholder($0) }.last)
    #expect(last.size == Self.size)
    // Bars at both sides, the picture between them.
    #expect(last.luma[0] == 16 && last.luma[95] == 16 && last.luma[48] != 16)
    #expect(
      rig.source.takeEvents().contains(.scaled(from: PictureSize(width: 128, height: 128), to: Self.size)))
  }

  @Test func `a camera that starts slowly is replaced by placeholders, and not stopped`() throws {
    let rig = try Rig()
    rig.camera.script.withLock { $0.delivers = false }
    try rig.source.start()
    defer { rig.source.stop() }
    #expect(try Self.shots(3, of: rig.source).allSatisfy(Self.isPlaceholder))
    #expect(rig.source.condition?.state == .waiting)
    rig.camera.script.withLock { $0.delivers = true }
    _ = try Self.shots(300, of: rig.source) { !Self.isPlaceholder($0) }
    #expect(rig.source.condition?.state == .live)
    #expect(rig.camera.stops.load(ordering: .relaxed) == 0)
  }

  @Test func `a camera that delivers only corrupt pictures counts as stalled and is restarted`() throws {
    let rig = try Rig()
    try rig.source.start()
    defer { rig.source.stop() }
    _ = try Self.shots(2, of: rig.source)
    rig.finder.finding.withLock { $0 = .camera(rig.camera) }
    rig.camera.script.withLock { $0.drop = .corrupt }
    #expect(try Self.shots(3, of: rig.source).allSatisfy(Self.isPlaceholder))
    #expect(rig.source.condition?.state == .stalled)
    let loss = CameraEvent.lost(reason: UnusableCamera(seconds: 2, cause: .corrupt).description)
    #expect(
      loss.description
        == "camera lost: only corrupt pictures for 2 seconds: unplug the camera and plug it in again, or choose another "
        + "--format; nightjar streams a placeholder")
    #expect(rig.source.takeEvents().count { $0 == loss } == 1)
    #expect(eventually { rig.camera.stops.load(ordering: .relaxed) > 0 })
    rig.camera.script.withLock { $0.drop = nil }
    _ = try Self.shots(900, of: rig.source) { !Self.isPlaceholder($0) }
    #expect(rig.source.condition?.state == .live)
  }

  @Test func `the wall clock moves nothing but the placeholder's text`() throws {
    let wall = Mutex<Int64>(1_700_000_000_000_000_000)
    let rig = try Rig { wall.withLock { $0 } }
    let start = Instant.now()
    try rig.source.start()
    defer { rig.source.stop() }
    _ = try Self.shots(2, of: rig.source)
    rig.camera.script.withLock { $0.failure = Self.lost }
    var shots = try Self.shots(5, of: rig.source)
    let before = try #require(shots.last)
    for hours in [-1, 24] as [Int64] {
      wall.withLock { $0 += hours * 3_600_000_000_000 }
      // The first may lie in memory that the last one is still in.
      shots += try Self.shots(5, of: rig.source)
    }
    let steps = zip(shots, shots.dropFirst()).map { $1.timestamp - $0.timestamp }
    #expect(steps.allSatisfy { $0 > .zero }, "\(steps)")
    // None is later than now, however long the machine held this thread up.
    #expect(shots.allSatisfy { $0.timestamp >= start && $0.timestamp <= .now() }, "\(steps)")
    #expect(rig.source.condition?.state == .disconnected)
    // Too small for text, so only the size is the same; the text itself is tested beside its picture.
    #expect(shots.last?.size == before.size)
  }

  @Test func `a frozen picture is reported, and so is its end`() throws {
    let rig = try Rig()
    rig.camera.script.withLock { $0.moves = false }
    try rig.source.start()
    defer { rig.source.stop() }
    #expect(
      try eventually { () throws -> Bool in
        _ = try Self.shots(1, of: rig.source)
        return rig.source.condition?.state == .frozen
      })
    rig.camera.script.withLock { $0.moves = true }
    _ = try Self.shots(3, of: rig.source)
    #expect(rig.source.condition?.state == .live)
    let events = rig.source.takeEvents()
    #expect(events.count == 2, "\(events)")
  }

  @Test func `a source that is stopped while it looks ends at once, and may begin anew`() throws {
    let rig = try Rig()
    rig.camera.script.withLock { $0.failure = Self.lost }
    for _ in 0..<3 {
      try rig.source.start()
      _ = try Self.shots(1, of: rig.source)
      let start = Instant.now()
      rig.source.stop()
      #expect(Instant.now() - start < Duration(seconds: 20))
    }
  }
}
