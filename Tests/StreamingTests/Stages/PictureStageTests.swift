import Dispatch
import Foundation
import Media
import PixelConversion
import Platform
import Streaming
import Synchronization
import TestSupport
import Testing

/// The distribution of pictures to viewers.
@Suite struct PictureStageTests {
  private static let size = PictureSize(width: 64, height: 48)
  private let stage = PictureStage(size: size)
  private let pool: FramePool

  init() throws {
    pool = try FramePool(size: Self.size)
  }

  /// Offers frames, taken at `time` or now, until `isEnough`.
  private func offer(at time: Instant? = nil, until isEnough: () -> Bool) async -> Bool {
    await comesTrue {
      if let frame = pool.checkout(color: .jpeg, timestamp: .zero, captured: time ?? .now()) { stage.offer(frame) }
      return isEnough()
    }
  }

  private func soon(_ seconds: Double = 600) -> Instant { .now() + Duration(seconds: seconds) }

  @Test func `nothing is made while nobody looks`() throws {
    for _ in 0..<100 {
      let frame = pool.checkout(color: .jpeg, timestamp: .zero, captured: .now())
      if let frame { stage.offer(frame) }
    }
    #expect(stage.statistics == PictureStatistics())
    #expect(!stage.demand.isWatched && !stage.isAwaited)
    let viewer = try stage.admit("somebody", isSnapshot: false)
    #expect(stage.demand.isWatched && !stage.isAwaited)
    stage.dismiss(viewer)
    #expect(!stage.demand.isWatched)
  }

  @Test func `a viewer of samples alone gets pictures, and no camera keeps its own for it`() async throws {
    let viewer = try stage.admit("events", isSnapshot: true, demands: false)
    #expect(!stage.demand.isWatched)
    let other = try stage.admit("somebody", isSnapshot: false)
    #expect(stage.demand.isWatched)
    stage.dismiss(other)
    #expect(!stage.demand.isWatched)
    let waiting = Task { try await stage.next(for: viewer, since: .now(), until: soon()) }
    #expect(await offer { stage.statistics.coded > 0 })
    #expect(try await waiting.value.bytes.prefix(2) == [0xff, 0xd8] && !stage.demand.isWatched)
    stage.dismiss(viewer)
    #expect(!stage.demand.isWatched)
  }

  @Test func `waiting viewers share one picture, and none gets an older one`() async throws {
    let before = Instant.now()
    let viewers = try (0..<3).map { try stage.admit("viewer \($0)", isSnapshot: false) }
    let since = Instant.now()
    let waiting = viewers.map { viewer in Task { try await stage.next(for: viewer, since: since, until: soon()) } }
    #expect(await comesTrue { stage.isAwaited })
    // The thread is getting ready, and then finds this one too old.
    #expect(await !comesTrue(within: 0.3) { offerOne(at: before) })
    #expect(await offer { stage.statistics.coded > 0 })
    for task in waiting {
      // Those who came to wait a moment later got the next one.
      _ = await offer { !stage.isAwaited }
      let picture = try await task.value
      #expect(picture.bytes.prefix(2) == [0xff, 0xd8] && picture.captured >= since)
    }
    #expect(stage.statistics.coded <= 3)
    #expect(stage.statistics.viewers.map(\.name) == ["viewer 0", "viewer 1", "viewer 2"])
  }

  private func offerOne(at time: Instant) -> Bool {
    if let frame = pool.checkout(color: .jpeg, timestamp: .zero, captured: time) { stage.offer(frame) }
    return stage.statistics.coded > 0
  }

  @Test func `a viewer that waits in vain gets an error in time`() async throws {
    let viewer = try stage.admit("viewer", isSnapshot: true)
    await #expect(throws: LiveViewerError.late(.pictures)) {
      try await stage.next(for: viewer, since: .now(), until: soon(0.1))
    }
    // And one who is gone, has given up, or whose stream has ended.
    let given = Task { try await stage.next(for: viewer, since: .now(), until: soon()) }
    #expect(await comesTrue { stage.isAwaited })
    given.cancel()
    await #expect(throws: LiveViewerError.ended) { try await given.value }
    let closed = Task { try await stage.next(for: viewer, since: .now(), until: soon()) }
    #expect(await comesTrue { stage.isAwaited })
    stage.close()
    await #expect(throws: LiveViewerError.ended) { try await closed.value }
    #expect(!stage.isAwaited)
    stage.dismiss(viewer)
    await #expect(throws: LiveViewerError.ended) { try await stage.next(for: viewer, since: .now(), until: soon()) }
    #expect(throws: LiveViewerError.ended) { try stage.admit("late", isSnapshot: false) }
  }

  /// Runs tasks on threads of its own: those of Swift concurrency are left where all of these stand still.
  private final class OwnThreads: TaskExecutor {
    private let queue = DispatchQueue(label: "viewers", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
  }

  private final class Course: Sendable {
    let ended = Atomic(0)
    let isOver = Atomic(false)
  }

  @Test func `a viewer that gives up during delivery delays no other viewer`() async throws {
    let executor = OwnThreads()
    let (stage, pool, course) = (self.stage, self.pool, Course())
    let rounds = 1000
    let viewers = try (0..<8).map { try stage.admit("viewer \($0)", isSnapshot: false) }
    // The stage's thread has begun, or all may have given up before that.
    let first = Task { try await stage.next(for: viewers[0], since: .zero, until: soon()) }
    #expect(await offer { stage.statistics.coded > 0 })
    _ = try await first.value
    let coded = stage.statistics.coded
    Thread.detachNewThread {
      while !course.isOver.load(ordering: .relaxed) {
        if let frame = pool.checkout(color: .jpeg, timestamp: .zero, captured: .now()) { stage.offer(frame) }
      }
    }
    for viewer in viewers {
      Thread.detachNewThread {
        for round in 0..<rounds {
          let task = Task(executorPreference: executor) {
            _ = try? await stage.next(for: viewer, since: .zero, until: .now() + Duration(seconds: 60))
            course.ended.add(1, ordering: .relaxed)
          }
          // About as long as a picture takes.
          usleep(useconds_t(round % 10) * 100)
          task.cancel()
        }
      }
    }
    #expect(await comesTrue { course.ended.load(ordering: .relaxed) == rounds * viewers.count })
    course.isOver.store(true, ordering: .relaxed)
    #expect(stage.statistics.coded > coded && !stage.isAwaited)
  }

  @Test func `after a thread fails to start, the next viewer gets another thread`() async throws {
    let course = Course()
    let stage = PictureStage(size: Self.size) { () throws(ConversionError) in
      guard course.ended.add(1, ordering: .relaxed).newValue > 1 else { throw .unavailable(library: "libjpeg") }
      return try JPEGEncoder()
    }
    let viewer = try stage.admit("viewer", isSnapshot: false)
    #expect(await comesTrue { course.ended.load(ordering: .relaxed) == 1 })
    // The first one may still see how the first thread ends.
    let picture = Task {
      do { return try await stage.next(for: viewer, since: .zero, until: soon()) } catch is ConversionError {
        return try await stage.next(for: viewer, since: .zero, until: soon())
      }
    }
    let isMade = await comesTrue {
      if let frame = pool.checkout(color: .jpeg, timestamp: .zero, captured: .now()) { stage.offer(frame) }
      return stage.statistics.coded > 0
    }
    #expect(isMade)
    #expect(try await picture.value.bytes.prefix(2) == [0xff, 0xd8])
    #expect(course.ended.load(ordering: .relaxed) == 2)
  }

  @Test func `there is a limit of viewers, and room again once one has gone`() throws {
    let viewers = try (0..<PictureStage.viewerLimit).map { try stage.admit("\($0)", isSnapshot: false) }
    #expect(throws: LiveViewerError.tooMany(.pictures, limit: PictureStage.viewerLimit)) {
      try stage.admit("one more", isSnapshot: true)
    }
    stage.dismiss(viewers[3])
    _ = try stage.admit("another", isSnapshot: true)
  }

  @Test func `a frame that has its camera's JPEG is handed on as that, with what it lacks`() async throws {
    // SOI, a segment of no meaning, SOS, data, EOI, padding.
    let jpeg: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xda, 0, 2, 7, 0xff, 0xd9, 0, 0]
    let kept = try #require(jpeg.withUnsafeBufferPointer { CompressedPictures().keep($0) })
    let viewer = try stage.admit("viewer", isSnapshot: true)
    let task = Task { try await stage.next(for: viewer, since: .zero, until: soon()) }
    let isDone = await comesTrue {
      if var frame = pool.checkout(color: .jpeg, timestamp: .zero, captured: .now()) {
        frame.compressed = kept
        stage.offer(frame)
      }
      return stage.statistics.passed > 0
    }
    #expect(isDone)
    let bytes = try await task.value.bytes
    #expect(bytes.prefix(8) == jpeg[..<8] && bytes.suffix(7) == jpeg[8..<15] && bytes.count == 15 + 420)
    #expect(stage.statistics.coded == 0)
  }
}
