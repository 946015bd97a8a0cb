import Capture
import Glibc
import Media
import Platform
import TestSupport
import Testing

/// Clips that come out of a pipe.
@Suite struct Y4MPipeTests {
  @Test func `a pipe is played once, picture for picture`() throws {
    let whole = try Clip(testClip(PictureSize(width: 642, height: 362), "yuv422p", frames: 5))
    let pipe = "\(whole.folder)/pipe.y4m"
    try #require(mkfifo(pipe, 0o600) == 0)
    #expect(throws: Y4MError.pipeCannotLoop(path: pipe)) { try Y4MFile(path: pipe) }
    #expect(throws: Y4MError.pipeCannotLoop(path: pipe)) { try Y4MFile(path: pipe, loops: 2) }
    let interrupt = try Interrupt()
    for pacing in [Y4MFile.Pacing.maximum, .realtime] {
      // The writer comes late and in two parts.
      let (head, tail) = ("head -c 700000 \(whole.path)", "tail -c +700001 \(whole.path)")
      try #require(system("(sleep 0.2; exec >\(pipe); \(head); sleep 0.2; \(tail)) &") == 0)
      let file = try Y4MFile(path: pipe, pacing: pacing, loops: 1)
      let reference = try Y4MFile(path: whole.path, pacing: .maximum, loops: 1)
      try file.start()
      try reference.start()
      var times: [Instant] = []
      for index in 0..<5 {
        guard case .frame(let frame) = try file.next(interrupt: interrupt),
          case .frame(let other) = try reference.next(interrupt: interrupt)
        else {
          Issue.record("no frame \(index)")
          return
        }
        let (left, right) = (packed(frame.planes), packed(other.planes))
        #expect(left.luma == right.luma && left.chroma == right.chroma)
        if let last = times.last { #expect(frame.timestamp > last) }
        times.append(frame.timestamp)
      }
      guard case .ended = try file.next(interrupt: interrupt) else {
        Issue.record("not ended")
        return
      }
    }
  }

  @Test func `a pipe whose writer stalls can be interrupted`() throws {
    let whole = try Clip(testClip(Y4MFileTests.small, "yuv420p", frames: 2))
    let pipe = "\(whole.folder)/pipe.y4m"
    try #require(mkfifo(pipe, 0o600) == 0)
    // One and a half pictures, and then nothing while somebody still could write.
    let writer = open(pipe, O_RDWR | O_CLOEXEC)
    try #require(writer >= 0)
    defer { close(writer) }
    try #require(system("head -c 7000 \(whole.path) >\(pipe)") == 0)
    let interrupt = try SharedInterrupt(pipe: writer)
    let file = try Y4MFile(path: pipe, pacing: .maximum, loops: 1)
    try file.start()
    guard case .frame = try file.next(interrupt: interrupt.interrupt) else {
      Issue.record("no frame")
      return
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        let shared = Unmanaged<SharedInterrupt>.fromOpaque(context).takeRetainedValue()
        // Until the half picture is read, or for a minute.
        var rest = pollfd(fd: shared.pipe, events: Int16(POLLIN), revents: 0)
        let deadline = Instant.now() + Duration(seconds: 60)
        while poll(&rest, 1, 0) > 0, rest.revents & Int16(POLLIN) != 0, .now() < deadline { usleep(1000) }
        usleep(50_000)
        shared.interrupt.fire()
        return nil
      }, Unmanaged.passRetained(interrupt).toOpaque())
    guard case .idle = try file.next(interrupt: interrupt.interrupt) else {
      Issue.record("not interrupted")
      return
    }
    pthread_join(thread, nil)
    // Half a picture is gone, and there is no way on from the middle of it.
    guard case .ended = try file.next(interrupt: interrupt.interrupt) else {
      Issue.record("not ended")
      return
    }
  }
}

/// An interrupt that two threads hold, for a reader of `pipe`.
final class SharedInterrupt: Sendable {
  let interrupt: Interrupt
  let pipe: CInt

  init(pipe: CInt) throws {
    interrupt = try Interrupt()
    self.pipe = pipe
  }
}
