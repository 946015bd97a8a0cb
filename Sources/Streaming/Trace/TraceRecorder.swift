import CTracing
package import Platform
import Synchronization

/// Writes every frame's way to a file, in the Trace Event Format that Perfetto and Chrome open.
///
/// Each thread of the frame path writes fixed records into a ring of its own, and neither waits nor allocates for it. A
/// thread with nothing else to do (`nj-trace`) turns the records into text ten times a second. The file can be read at
/// any time: the format allows the last bracket to be absent, as where the program was killed.
package final class TraceRecorder: Sendable {
  /// An event that a person should know.
  package enum Event: Sendable, Hashable, CustomStringConvertible {
    /// The file has reached its largest size, and nothing more is recorded.
    case full(bytes: Int)
    /// The file cannot be written any more.
    case failed(errorNumber: CInt)
    /// The file had not taken the remaining records when the program ended.
    case unfinished
    /// So many records have found no room since the last such event, because the file was written too slowly.
    case lost(records: UInt64)

    /// One line.
    package var description: String {
      switch self {
      case .full(let bytes):
        "the trace is full at \(bytes) bytes and ends here; for more, raise --trace-limit"
      case .failed(let errorNumber):
        "the trace cannot be written (\(SystemFailure.text(errorNumber))) and ends here; the stream continues"
      case .unfinished:
        "the trace is incomplete: its file did not accept the rest in time"
      case .lost(let records):
        "the trace lacks \(records) records: its file is written too slowly"
      }
    }
  }

  /// The number of a thread's records between two reads. At 60 frames a second a stage writes some 300 a second.
  static let capacity: UInt32 = 4096
  /// The interval at which records are written.
  private static let interval = Duration(seconds: 0.1)

  private let lanes = Mutex<[TraceLane]>([])
  private let events = Mutex<[Event]>([])
  private let stopping: Interrupt
  private let finished: Interrupt

  private let isToldUnfinished = Atomic(false)

  /// The time until which the end waits for a disk, once the end has begun.
  private let deadline = Mutex<Instant?>(nil)
  /// The length of that wait: all ends of the program together have ten seconds (TimeoutStopSec=).
  private static let patience = Duration(seconds: 2)

  /// Writes to an open file from its present place on, until ``end()``, and closes it then.
  ///
  /// - Parameters:
  ///   - file: open for writing.
  ///   - limit: the most bytes that are written.
  /// - Throws: ``/Media/SystemFailure`` where the system has no thread or descriptor left.
  package init(_ file: consuming FileDescriptor, limit: Int) throws(SystemFailure) {
    stopping = try Interrupt()
    finished = try Interrupt()
    // No closure can consume a noncopyable value: the thread takes the number, and the ownership with it.
    let number = file.number
    // Detached: a disk that does not answer must not hold up the end of the program.
    try NamedThread("nj-trace") { [self] in
      run(FileDescriptor(owning: number), limit: limit)
      finished.fire()
    }.detach()
    _ = file.take()
  }

  /// Writes the remaining records and closes the file; later marks are lost. Any number of times.
  package func end() {
    stopping.fire()
    let deadline = deadline.withLock { deadline in
      let first = deadline ?? .now() + Self.patience
      deadline = first
      return first
    }
    // `true` if the deadline has passed.
    guard finished.wait(until: deadline), !isToldUnfinished.exchange(true, ordering: .relaxed) else { return }
    events.withLock { $0.append(.unfinished) }
  }

  /// Returns the events since the last call.
  package func takeEvents() -> [Event] {
    events.withLock { events in
      defer { events = [] }
      return events
    }
  }

  /// Returns a place for the calling thread's records; nil where there is no memory for it.
  func open(camera: CameraTrace, thread: String) -> TraceLane? {
    guard let lane = TraceLane(camera: camera, thread: thread, capacity: Self.capacity) else { return nil }
    lanes.withLock { $0.append(lane) }
    return lane
  }

  private func run(_ file: consuming FileDescriptor, limit: Int) {
    var text = TraceText(file, limit: limit)
    var records = [nightjar_trace_record](repeating: .init(), count: 512)
    var reported: UInt64 = 0
    while stopping.wait(until: .now() + Self.interval) {
      write(&text, &records)
      tell(&text, &reported)
    }
    write(&text, &records)
    text.end()
    tell(&text, &reported)
  }

  private func tell(_ text: inout TraceText, _ reported: inout UInt64) {
    if let event = text.takeEvent() { events.withLock { $0.append(event) } }
    guard text.lost > reported else { return }
    let new = text.lost - reported
    reported = text.lost
    events.withLock { $0.append(.lost(records: new)) }
  }

  private func write(_ text: inout TraceText, _ records: inout [nightjar_trace_record]) {
    // A lane that was closed before this point gets no more records, and is read to its end now.
    let (all, closed) = lanes.withLock { lanes in
      let closed = lanes.filter(\.isClosed)
      let all = lanes
      // Even where nothing is removed, an array with two holders would be copied.
      if !closed.isEmpty { lanes.removeAll { lane in closed.contains { $0 === lane } } }
      return (all, closed)
    }
    for lane in all {
      text.introduce(lane)
      while true {
        let count = records.withUnsafeMutableBufferPointer { lane.take($0) }
        for record in records[..<count] { text.add(record, of: lane) }
        if count < records.count { break }
      }
      text.count(lost: lane.newlyLost())
    }
    for lane in closed { text.forget(lane) }
    text.flush()
  }
}

/// One thread's records.
final class TraceLane: @unchecked Sendable {
  // Sendable: the ring is made for one thread that writes and one that takes; the rest is constant, or the taker's
  // alone.
  let camera: CameraTrace
  let threadName: String
  /// The kernel's number of the thread.
  let thread: Int64
  let ring: OpaquePointer
  private let closed = Atomic(false)
  private var lost: UInt64 = 0

  /// Creates a lane for the calling thread.
  init?(camera: CameraTrace, thread: String, capacity: UInt32) {
    guard let ring = nightjar_trace_ring_make(capacity) else { return nil }
    self.ring = ring
    self.camera = camera
    threadName = thread
    self.thread = nightjar_trace_thread()
  }

  deinit { nightjar_trace_ring_free(ring) }

  /// Notes that its thread writes nothing more.
  func close() { closed.store(true, ordering: .releasing) }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Takes the oldest records. Returns their number.
  func take(_ records: UnsafeMutableBufferPointer<nightjar_trace_record>) -> Int {
    nightjar_trace_ring_take(ring, records.baseAddress, records.count)
  }

  /// Returns the number of records that have found no room since the last call.
  func newlyLost() -> UInt64 {
    let now = nightjar_trace_ring_lost(ring)
    defer { lost = now }
    return now - lost
  }
}
