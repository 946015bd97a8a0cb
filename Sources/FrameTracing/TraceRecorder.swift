import CTracing
public import Media
import Synchronization
import Threading

/// Writes every frame's way to a file, in the Trace Event Format that Perfetto and Chrome open.
///
/// Each thread of the frame path writes fixed records into a ring of its own, and neither waits nor allocates for it; a thread
/// with nothing else to do (`nj-trace`) turns them into text ten times a second. The file is at any time one that can be
/// read: the format leaves out the last bracket of one whose program was killed.
public final class TraceRecorder: Sendable {
  /// What a person should know.
  public enum Event: Sendable, Hashable, CustomStringConvertible {
    /// The file is as large as it may be, and nothing more is recorded.
    case full(bytes: Int)
    /// It cannot be written any more.
    case failed(errorNumber: CInt)
    /// Its file has not taken what was left when the program ended.
    case unfinished
    /// So many records have found no room since the last such event, because the file was written too slowly.
    case lost(records: UInt64)

    /// One line.
    public var description: String {
      switch self {
      case .full(let bytes):
        "the trace is full at \(bytes) bytes, and nothing more is recorded; a larger --trace-limit takes more"
      case .failed(let errorNumber):
        "the trace cannot be written any more (\(SystemFailure.text(errorNumber))): it ends here, the stream goes on"
      case .unfinished:
        "the trace is not complete: its file did not take what was left in time"
      case .lost(let records):
        "the trace lacks \(records) records: its file is written too slowly"
      }
    }
  }

  /// Records of one thread between two looks at it. At 60 frames a second a stage writes some 300 a second.
  static let capacity: UInt32 = 4096
  /// How often they are written.
  private static let interval = MediaTime(seconds: 0.1)

  private let lanes = Mutex<[TraceLane]>([])
  private let events = Mutex<[Event]>([])
  private let stopping: Interrupt
  private let finished: Interrupt

  private let isToldUnfinished = Atomic(false)

  /// Until when the end waits for a disk, once it has begun.
  private let deadline = Mutex<MediaTime?>(nil)
  /// How long that is: all ends of the program together have ten seconds (TimeoutStopSec=).
  private static let patience = MediaTime(seconds: 2)

  /// Writes to an open file from its present place on, until ``end()``, and closes it then.
  ///
  /// - Parameters:
  ///   - descriptor: open for writing; stays the caller's where this throws.
  ///   - limit: the most bytes that are written.
  /// - Throws: ``/Media/SystemFailure`` where the system has no thread or descriptor left.
  public init(descriptor: CInt, limit: Int) throws(SystemFailure) {
    stopping = try Interrupt()
    finished = try Interrupt()
    // Nobody joins it: a disk that does not answer is not to hold up the end of the program.
    try NamedThread("nj-trace") { [self] in
      run(descriptor: descriptor, limit: limit)
      finished.fire()
    }.detach()
  }

  /// Writes what is left and closes the file; what is marked after that is lost. Any number of times.
  public func end() {
    stopping.fire()
    let deadline = deadline.withLock { deadline in
      let first = deadline ?? .now() + Self.patience
      deadline = first
      return first
    }
    // True where that has passed.
    guard finished.wait(until: deadline), !isToldUnfinished.exchange(true, ordering: .relaxed) else { return }
    events.withLock { $0.append(.unfinished) }
  }

  /// What happened since the last call.
  public func takeEvents() -> [Event] {
    events.withLock { events in
      defer { events = [] }
      return events
    }
  }

  /// A place for the calling thread's records; nil where there is no memory for it.
  func open(camera: CameraTrace, thread: String) -> TraceLane? {
    guard let lane = TraceLane(camera: camera, thread: thread, capacity: Self.capacity) else { return nil }
    lanes.withLock { $0.append(lane) }
    return lane
  }

  private func run(descriptor: CInt, limit: Int) {
    var text = TraceText(descriptor: descriptor, limit: limit)
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
    // A lane that has been closed before this gets no more records, and is taken to its end now.
    let (all, closed) = lanes.withLock { lanes in
      let closed = lanes.filter(\.isClosed)
      let all = lanes
      // Even where nothing is removed, what is held twice would be copied.
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
  // Sendable: the ring is made for one thread that writes and one that takes; the rest is constant, or the taker's alone.
  let camera: CameraTrace
  let threadName: String
  /// The kernel's number of the thread.
  let thread: Int64
  let ring: OpaquePointer
  private let closed = Atomic(false)
  private var lost: UInt64 = 0

  /// One for the calling thread.
  init?(camera: CameraTrace, thread: String, capacity: UInt32) {
    guard let ring = nightjar_trace_ring_make(capacity) else { return nil }
    self.ring = ring
    self.camera = camera
    threadName = thread
    self.thread = nightjar_trace_thread()
  }

  deinit { nightjar_trace_ring_free(ring) }

  /// Its thread writes nothing more.
  func close() { closed.store(true, ordering: .releasing) }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Takes the oldest records; how many.
  func take(_ records: UnsafeMutableBufferPointer<nightjar_trace_record>) -> Int {
    nightjar_trace_ring_take(ring, records.baseAddress, records.count)
  }

  /// How many records have found no room since the last call.
  func newlyLost() -> UInt64 {
    let now = nightjar_trace_ring_lost(ring)
    defer { lost = now }
    return now - lost
  }
}
