import Capture
import Media
import Platform
import Streaming
import TestSupport
import Testing

/// A pipeline's figures second by second, under a watch whose limit is 5 s.
private struct Course {
  var progress = PipelineProgress()
  var now = Instant(seconds: 1000)
  var watch: ProgressWatch

  init(frameInterval: Double = 1.0 / 30) {
    watch = ProgressWatch(
      limit: Duration(seconds: 5), frameInterval: Duration(seconds: frameInterval), at: now)
  }

  /// Lets `seconds` pass with a check at each; `step` says what happens in one.
  mutating func pass(_ seconds: Int, _ step: (inout PipelineProgress) -> Void = { _ in }) {
    for _ in 0..<seconds {
      step(&progress)
      now = now + Duration(seconds: 1)
      watch.judge(progress, at: now)
    }
  }
}

@Suite struct ProgressWatchTests {
  private static func all(_ progress: inout PipelineProgress) {
    progress.captured += 30
    progress.encoded += 30
    progress.queued += 30
    progress.sent += 30
  }

  @Test func `a stream that flows stands nowhere`() {
    var course = Course()
    course.pass(60, Self.all)
    #expect(course.watch.stuck == nil)
  }

  @Test func `a source that gives no frame is told after the limit, and not before`() {
    var course = Course()
    course.pass(10, Self.all)
    course.pass(4)
    #expect(course.watch.stuck == nil)
    course.pass(1)
    #expect(course.watch.stuck == .capture)
    course.pass(1, Self.all)
    #expect(course.watch.stuck == nil)
  }

  @Test func `a source that never gives a frame is told too`() {
    var course = Course()
    course.pass(5)
    #expect(course.watch.stuck == .capture)
  }

  @Test func `an encoder that does not come back is told, while frames go on coming`() {
    var course = Course()
    course.pass(10, Self.all)
    course.pass(5) { $0.captured += 30 }
    #expect(course.watch.stuck == nil)
    course.pass(1) { $0.captured += 30 }
    #expect(course.watch.stuck == .encode)
    course.pass(1, Self.all)
    #expect(course.watch.stuck == nil)
  }

  @Test func `of a stuck sender and the encoder that waits for it, only the sender is reported`() {
    var course = Course()
    course.pass(10, Self.all)
    // Three pictures fill the queue; then the encode stage has no room, and takes no frame.
    course.pass(1) {
      $0.captured += 30
      $0.encoded += 3
      $0.queued += 3
    }
    course.pass(4) { $0.captured += 30 }
    #expect(course.watch.stuck == nil)
    course.pass(1) { $0.captured += 30 }
    #expect(course.watch.stuck == .send)
    // A source that is not live waits as well.
    course.pass(10)
    #expect(course.watch.stuck == .send)
  }

  @Test func `an unwatched stream is no fault, and a stuck stage is still reported`() {
    var course = Course()
    course.pass(10, Self.all)
    course.pass(600) {
      $0.captured += 30
      $0.encoded += 30
    }
    #expect(course.watch.stuck == nil)
    course.pass(6) { $0.captured += 30 }
    #expect(course.watch.stuck == .encode)
  }

  @Test func `a camera that is slower than the limit has three intervals for a frame`() {
    var course = Course(frameInterval: 20)
    for _ in 0..<5 {
      course.pass(1) {
        $0.captured += 1
        $0.encoded += 1
        $0.queued += 1
        $0.sent += 1
      }
      course.pass(19)
      #expect(course.watch.stuck == nil)
    }
    course.pass(41)
    #expect(course.watch.stuck == .capture)
  }

  @Test func `an encoder is told on a slow camera as well`() {
    var course = Course(frameInterval: 20)
    course.pass(1) { $0.captured += 1 }
    course.pass(5)
    #expect(course.watch.stuck == .encode)
  }

  @Test func `a program that was stopped as a whole gets its time again`() {
    var course = Course()
    course.pass(10, Self.all)
    course.pass(4)
    // SIGSTOP, or a machine that slept.
    course.now = course.now + Duration(seconds: 3600)
    course.watch.judge(course.progress, at: course.now)
    #expect(course.watch.stuck == nil)
    course.pass(1)
    #expect(course.watch.stuck == .capture)
  }

  @Test func `looks at the longest interval that is allowed are no pause`() {
    var now = Instant.zero
    var watch = ProgressWatch(limit: Duration(seconds: 1), frameInterval: Duration(seconds: 0.03), at: now)
    for _ in 0..<4 {
      now = now + Duration(seconds: 0.25)
      watch.judge(PipelineProgress(), at: now)
    }
    #expect(watch.stuck == .capture)
  }

  // MARK: The figures of a real pipeline

  private static func pipeline(to destinations: [String], restsUnwatched: Bool = false) throws -> Pipeline {
    let source = try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty)
    return try Pipeline(
      source: source, encoder: try SizedEncoder(keyBytes: 500, bytes: 100),
      destinations: destinations.map { try StreamDestination(url: $0) }, keyFrameInterval: Duration(seconds: 2),
      restsUnwatched: restsUnwatched)
  }

  /// The figures before and after a while in which some frames come.
  private static func progress(of pipeline: Pipeline) throws -> (before: PipelineProgress, after: PipelineProgress) {
    try pipeline.start()
    defer {
      pipeline.stop()
      _ = pipeline.waitUntilEnd()
    }
    try #require(eventually { pipeline.progress.captured > 0 })
    let before = pipeline.progress
    // On a busy machine frames may come, and be dropped, while the encode stage gets no processor.
    try #require(
      eventually {
        let progress = pipeline.progress
        return progress.captured > before.captured + 10 && progress.encoded > before.encoded + 5
      })
    // What is on its way gets there.
    _ = eventually { pipeline.progress.sent == pipeline.progress.queued }
    return (before, pipeline.progress)
  }

  @Test func `a network that takes nothing lets every stage go on`() throws {
    // Nobody listens there, and the other one has no route.
    let (before, after) = try Self.progress(of: try Self.pipeline(to: ["rtp://127.0.0.1:9", "rtp://240.0.0.1:5004"]))
    #expect(after.encoded > before.encoded + 3)
    #expect(after.queued > before.queued + 3)
    #expect(after.sent > before.sent + 3)
  }

  @Test func `without viewers the encode stage continues, and nothing waits for the network`() throws {
    let (before, after) = try Self.progress(of: try Self.pipeline(to: [], restsUnwatched: true))
    #expect(after.encoded > before.encoded + 3)
    #expect(after.queued == after.sent)
  }
}
