import CTracing
import Foundation
import Media
import Platform
import Streaming
import TestSupport
import Testing

/// The records' way from a thread of the frame path to the one that writes them down.
@Suite struct RingTests {
  private final class Ring: @unchecked Sendable {
    // Sendable: as the ring is, for one thread that writes and one that takes.
    let pointer: OpaquePointer
    init(_ capacity: UInt32) throws { pointer = try #require(nightjar_trace_ring_make(capacity)) }
    deinit { nightjar_trace_ring_free(pointer) }

    func take(_ count: Int) -> [nightjar_trace_record] {
      var records = [nightjar_trace_record](repeating: .init(), count: count)
      return Array(records[..<nightjar_trace_ring_take(pointer, &records, count)])
    }
  }

  @Test func `records come in order, and what finds no room is counted`() throws {
    let ring = try Ring(8)
    nightjar_trace_enter(3, ring.pointer)
    defer { nightjar_trace_leave() }
    for frame in 1...11 { nightjar_frame_sent(Int64(frame), 100, 250) }
    #expect(nightjar_trace_ring_lost(ring.pointer) == 3)
    let first = ring.take(5)
    #expect(first.map(\.frame) == [1, 2, 3, 4, 5] && first.allSatisfy { $0.end - $0.origin == 150 })
    nightjar_frame_sent(12, 0, 1)
    #expect(ring.take(10).map(\.frame) == [6, 7, 8, 12])
    #expect(ring.take(10).isEmpty)
    #expect(nightjar_trace_ring_make(7) == nil && nightjar_trace_ring_make(0) == nil)
  }

  @Test func `no record is lost or torn between two threads`() throws {
    let ring = try Ring(64)
    let count = 200_000
    let writer = try NamedThread("nj-test") {
      nightjar_trace_enter(1, ring.pointer)
      var frame: Int64 = 1
      while frame <= count {
        let before = nightjar_trace_ring_lost(ring.pointer)
        nightjar_frame_sent(frame, frame &* 3, frame &* 5)
        // What had no room is written again, so that each must come.
        if nightjar_trace_ring_lost(ring.pointer) == before { frame += 1 } else { usleep(10) }
      }
      nightjar_trace_leave()
    }
    var next: Int64 = 1
    let deadline = ContinuousClock.now + .seconds(300)
    while next <= count, .now < deadline {
      for record in ring.take(32) {
        guard record.frame == next, record.origin == next * 3, record.end == next * 5 else {
          Issue.record("\(record) instead of \(next)")
          return
        }
        next += 1
      }
    }
    #expect(next == count + 1)
    _ = consume writer
  }

  @Test func `a thread outside of a trace writes no record`() throws {
    let ring = try Ring(8)
    nightjar_trace_enter(1, ring.pointer)
    nightjar_trace_leave()
    #expect(nightjar_encode_begin(1) == 0)
    nightjar_encode_end(1, 0, 1, 1)
    FrameMark.dropped(nil, .driver)
    #expect(ring.take(8).isEmpty)
  }

  @Test func `a viewer's network is a counter in the text`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    let recorder = try TraceRecorder(FileDescriptor(owning: descriptor), limit: 1 << 20)
    CameraTrace(number: 2, name: "door", recorder: recorder).follow(thread: "nj-send") {
      nightjar_network_estimate(7, 850_400, 123_456_789)
      nightjar_network_estimate(7, 0, -1)
    }
    recorder.end()
    let events = try TraceFile(path).events.filter { $0.phase == "C" }
    #expect(events.map(\.name) == ["network", "network"])
    #expect(events.allSatisfy { $0.identifier == "7" && $0.process == 2 })
    #expect(events.map { $0.arguments["kbit_s"] as? Double } == [850, 0])
    #expect(events.map { $0.arguments["queue_ms"] as? Double } == [123.456, 0])
  }

  @Test func `a viewer's rendition is a counter in the text`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    let recorder = try TraceRecorder(FileDescriptor(owning: descriptor), limit: 1 << 20)
    CameraTrace(number: 2, name: "door", recorder: recorder).follow(thread: "nj-send") {
      nightjar_rendition_change(7, 360)
      nightjar_rendition_change(7, 0)
    }
    recorder.end()
    let events = try TraceFile(path).events.filter { $0.phase == "C" }
    #expect(events.map(\.name) == ["rendition", "rendition"])
    #expect(events.allSatisfy { $0.identifier == "7" && $0.process == 2 })
    #expect(events.map { $0.arguments["small_height"] as? Double } == [360, 0])
  }

  @Test func `names that JSON has to escape, and all kinds of ends, are told`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    let recorder = try TraceRecorder(FileDescriptor(owning: descriptor), limit: 1_000_000)
    let camera = CameraTrace(number: 7, name: "a \"b\" \\ \u{1}ü", recorder: recorder)
    camera.follow(thread: "nj-send") {
      let begin = nightjar_convert_begin(42)
      #expect(begin > 0)
      nightjar_convert_end(42, begin)
      FrameMark.dropped(Instant(nanoseconds: 42), .encoderLate)
      FrameMark.dropped(nil, .driver, count: 3)
      FrameMark.skipped(Instant(nanoseconds: 43), .thinned)
    }
    recorder.end()
    recorder.end()
    let trace = try TraceFile(path)
    #expect(trace.processes == [7: "a \"b\" \\ \u{1}ü"])
    let dropped = trace.slices("dropped")
    #expect(dropped.map { $0.arguments["reason"] as? String } == ["encoder_late", "driver"])
    #expect(dropped.map(\.frame) == [42, -1] && dropped[1].arguments["count"] as? Int == 3)
    #expect(trace.slices("skipped").first?.arguments["reason"] as? String == "thinned")
    #expect(recorder.takeEvents().isEmpty)
  }
}
