import CTracing
import Glibc
import Media
import Platform

/// Records as text: the Trace Event Format's JSON array, one event a line. Cameras are its processes. Used by one
/// thread.
///
/// A frame is an asynchronous slice from the picture to its last packet. It is also slices on the threads that it
/// passes through, which arrows (flow events) join. Times are microseconds of `CLOCK_MONOTONIC`.
struct TraceText: ~Copyable {
  private let file: FileDescriptor
  private let limit: Int
  private var buffer: [UInt8] = []
  private var written = 0
  private var hasEvents = false
  private var hasStopped = false
  private var hasFailed = false
  /// The position in the file of the last comma between two events; all before it is whole.
  private var lastComma: off_t = -1
  private var event: TraceRecorder.Event?
  private var cameras: Set<Int> = []
  private var lanes: Set<ObjectIdentifier> = []
  /// Records that have found no room.
  private(set) var lost: UInt64 = 0

  /// The number of bytes that are written at a time.
  private static let flushBytes = 1 << 16

  /// Begins the text.
  ///
  /// - Parameters:
  ///   - file: open for writing.
  ///   - limit: the most bytes that are written.
  init(_ file: consuming FileDescriptor, limit: Int) {
    self.file = file
    self.limit = limit
    buffer.reserveCapacity(2 * Self.flushBytes)
    append("[")
  }

  // MARK: What is told

  /// Names a thread, and its camera, the first time.
  mutating func introduce(_ lane: TraceLane) {
    if cameras.insert(lane.camera.number).inserted {
      metadata("process_name", lane.camera.number, nil, lane.camera.name)
      sortIndex("process_sort_index", lane.camera.number, nil, lane.camera.number)
    }
    guard lanes.insert(ObjectIdentifier(lane)).inserted else { return }
    metadata("thread_name", lane.camera.number, lane.thread, lane.threadName)
    sortIndex("thread_sort_index", lane.camera.number, lane.thread, Self.order(of: lane.threadName))
  }

  /// Forgets a thread that has ended: another may have its place in memory.
  mutating func forget(_ lane: TraceLane) { lanes.remove(ObjectIdentifier(lane)) }

  /// Counts lost records.
  mutating func count(lost count: UInt64) { lost += count }

  /// Writes one record.
  mutating func add(_ record: nightjar_trace_record, of lane: TraceLane) {
    switch Int(record.kind) {
    case nightjar_trace_capture:
      // From the time at which the picture was taken, which is before any thread knew of it.
      life("b", record, at: record.origin, lane)
      slice("capture", record, lane)
      flow("s", record, at: record.begin, lane)
    case nightjar_trace_convert:
      slice("convert", record, lane)
    case nightjar_trace_encode:
      slice("encode", record, lane, ("bytes", record.first), ("key_frames", record.second))
      flow("t", record, at: record.begin, lane)
    case nightjar_trace_packetize:
      slice("packetize", record, lane, ("packets", record.first))
      flow("t", record, at: record.begin, lane)
    case nightjar_trace_send:
      slice("send", record, lane, ("packets", record.first))
      flow("t", record, at: record.begin, lane)
    case nightjar_trace_sent:
      end("sent", record, lane, latency: record.end - record.origin)
    case nightjar_trace_dropped:
      let cause = DropCause(rawValue: Int(record.first))?.name ?? "unknown"
      end("dropped", record, lane, reason: cause, count: record.second)
    case nightjar_trace_skipped:
      end("skipped", record, lane, reason: SkipReason(rawValue: record.first)?.name ?? "unknown")
    case nightjar_trace_network:
      network(record, lane)
    case nightjar_trace_rendition:
      rendition(record, lane)
    default: break
    }
    if buffer.count >= Self.flushBytes { flush() }
  }

  /// Returns the event since the last call.
  mutating func takeEvent() -> TraceRecorder.Event? { event.take() }

  // MARK: Events

  /// Writes work that took time on a thread.
  private mutating func slice(
    _ name: StaticString, _ record: nightjar_trace_record, _ lane: TraceLane, _ arguments: (StaticString, UInt32)...
  ) {
    begin("X", name, "frame", lane, at: record.begin)
    append(",\"dur\":")
    append(microseconds: max(0, record.end - record.begin))
    append(",\"args\":{\"frame\":")
    append(number: record.frame)
    for (name, value) in arguments {
      append(",\"")
      append(name)
      append("\":")
      append(number: Int64(value))
    }
    append("}}")
    commit()
  }

  /// Writes the end of a frame's way: a mark of no length on the thread, where the arrow leads, and the end of the
  /// frame's own slice.
  private mutating func end(
    _ name: StaticString, _ record: nightjar_trace_record, _ lane: TraceLane, latency: Int64? = nil,
    reason: String? = nil, count: UInt32 = 0
  ) {
    begin("X", name, "frame", lane, at: record.end)
    // Lost before there was a frame.
    let isFrame = record.frame >= 0
    append(",\"dur\":0,\"args\":{\"")
    if isFrame {
      append("frame\":")
      append(number: record.frame)
    } else {
      append("count\":")
      append(number: Int64(count))
    }
    if let latency {
      append(",\"latency_us\":")
      append(microseconds: latency)
    }
    if let reason {
      append(",\"reason\":\"")
      append(escaping: reason)
      append("\"")
    }
    if isFrame, count > 0 {
      append(",\"count\":")
      append(number: Int64(count))
    }
    append("}}")
    commit()
    guard isFrame else { return }
    flow("f", record, at: record.end, lane)
    life("e", record, at: record.end, lane)
  }

  /// Writes a point of the arrow that follows a frame, in the slice that begins there.
  private mutating func flow(
    _ phase: StaticString, _ record: nightjar_trace_record, at time: Int64, _ lane: TraceLane
  ) {
    begin(phase, "frame", "way", lane, at: time)
    append(identifier: record.frame, of: lane.camera.number)
    append(",\"bp\":\"e\"}")
    commit()
  }

  /// Writes the beginning or the end of the slice that is the frame itself.
  private mutating func life(
    _ phase: StaticString, _ record: nightjar_trace_record, at time: Int64, _ lane: TraceLane
  ) {
    begin(phase, "frame", "life", lane, at: time)
    append(identifier: record.frame, of: lane.camera.number)
    append(",\"args\":{\"frame\":")
    append(number: record.frame)
    append("}}")
    commit()
  }

  /// Writes what a viewer's network takes: a counter, which a diagram shows over time.
  private mutating func network(_ record: nightjar_trace_record, _ lane: TraceLane) {
    begin("C", "network", "viewer", lane, at: record.end)
    append(",\"id\":\"")
    append(number: record.frame)
    append("\",\"args\":{\"kbit_s\":")
    append(number: Int64(record.first))
    append(",\"queue_ms\":")
    // The record has microseconds, as many nanoseconds as its text has microseconds.
    append(microseconds: Int64(record.second))
    append("}}")
    commit()
  }

  /// Writes which rendition a viewer gets: a counter with the height of small pictures, or 0.
  private mutating func rendition(_ record: nightjar_trace_record, _ lane: TraceLane) {
    begin("C", "rendition", "viewer", lane, at: record.end)
    append(",\"id\":\"")
    append(number: record.frame)
    append("\",\"args\":{\"small_height\":")
    append(number: Int64(record.first))
    append("}}")
    commit()
  }

  private mutating func metadata(_ name: StaticString, _ process: Int, _ thread: Int64?, _ value: String) {
    begin(name, process, thread)
    append("\"name\":\"")
    append(escaping: value)
    append("\"}}")
    commit()
  }

  private mutating func sortIndex(_ name: StaticString, _ process: Int, _ thread: Int64?, _ value: Int) {
    begin(name, process, thread)
    append("\"sort_index\":")
    append(number: Int64(value))
    append("}}")
    commit()
  }

  /// Returns the position of a thread, in the order in which frames pass through threads.
  private static func order(of thread: String) -> Int {
    ["nj-capture", "nj-encode", "nj-send"].firstIndex(of: thread) ?? 3
  }

  // MARK: Text

  private var mark = 0

  private mutating func begin(_ name: StaticString, _ process: Int, _ thread: Int64?) {
    separate()
    append("{\"ph\":\"M\",\"name\":\"")
    append(name)
    append("\",\"pid\":")
    append(number: Int64(process))
    append(",\"tid\":")
    append(number: thread ?? 0)
    append(",\"args\":{")
  }

  private mutating func begin(
    _ phase: StaticString, _ name: StaticString, _ category: StaticString, _ lane: TraceLane, at time: Int64
  ) {
    separate()
    append("{\"ph\":\"")
    append(phase)
    append("\",\"name\":\"")
    append(name)
    append("\",\"cat\":\"")
    append(category)
    append("\",\"pid\":")
    append(number: Int64(lane.camera.number))
    append(",\"tid\":")
    append(number: lane.thread)
    append(",\"ts\":")
    append(microseconds: time)
  }

  /// Begins an event on a line of its own, behind the comma of the one before.
  private mutating func separate() {
    mark = buffer.count
    append(hasEvents ? ",\n" : "\n")
  }

  /// Takes the event that was just appended, or drops it where it is beyond the limit.
  private mutating func commit() {
    guard !hasStopped, written + buffer.count + Self.lastBytes <= limit else {
      buffer.removeSubrange(mark...)
      if !hasStopped { event = .full(bytes: written + buffer.count + Self.lastBytes) }
      hasStopped = true
      return
    }
    hasEvents = true
  }

  /// The size of the last bracket, with its line ends.
  private static let lastBytes = 3

  /// Writes the last bracket. Nothing more may follow.
  mutating func end() {
    append("\n]\n")
    flush()
    hasStopped = true
  }

  /// Writes the buffer to the file.
  mutating func flush() {
    defer { buffer.removeAll(keepingCapacity: true) }
    guard !hasFailed else { return }
    var offset = 0
    do throws(SystemFailure) {
      while offset < buffer.count {
        let count = try syscall("write") {
          buffer.withUnsafeBytes {
            write(file.number, $0.baseAddress.unsafelyUnwrapped + offset, $0.count - offset)
          }
        }
        guard count > 0 else { throw SystemFailure("write", errorNumber: EIO) }
        offset += count
      }
    } catch {
      event = .failed(errorNumber: error.errorNumber)
      (hasStopped, hasFailed) = (true, true)
    }
    noteComma(before: offset)
    if hasFailed { finish(at: lastComma) }
    written += offset
  }

  /// Finds the last comma between events that has room for the end behind it, in the buffer's bytes that were written.
  private mutating func noteComma(before offset: Int) {
    // -1 for a pipe, which takes back nothing.
    let position = lseek(file.number, 0, SEEK_CUR)
    guard position >= 0 else { return }
    var index = offset - Self.lastBytes
    while index >= 0 {
      if buffer[index] == UInt8(ascii: ","), buffer[index + 1] == UInt8(ascii: "\n") {
        lastComma = position - off_t(offset - index)
        return
      }
      index -= 1
    }
  }

  /// Ends a file that takes no more, behind its last whole event, so that it can be read.
  private func finish(at comma: off_t) {
    guard comma >= 0, ftruncate(file.number, comma) == 0, lseek(file.number, comma, SEEK_SET) == comma else { return }
    _ = "\n]\n".utf8.withContiguousStorageIfAvailable { write(file.number, $0.baseAddress, $0.count) }
  }

  private mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { buffer.append(contentsOf: $0) }
  }

  private mutating func append(number: Int64) {
    if number < 0 { buffer.append(UInt8(ascii: "-")) }
    append(digits: number.magnitude, radix: 10, least: 1)
  }

  /// Appends nanoseconds as microseconds, to the nanosecond.
  private mutating func append(microseconds nanoseconds: Int64) {
    if nanoseconds < 0 { buffer.append(UInt8(ascii: "-")) }
    let (whole, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
    append(digits: whole, radix: 10, least: 1)
    buffer.append(UInt8(ascii: "."))
    append(digits: rest, radix: 10, least: 3)
  }

  /// Appends a frame's identifier among those of all cameras: Perfetto ignores the process of an arrow's ends.
  private mutating func append(identifier frame: Int64, of camera: Int) {
    append(",\"id\":\"0x")
    let bits = UInt64(truncatingIfNeeded: camera) << 56 | UInt64(bitPattern: frame) & (1 << 56 - 1)
    append(digits: bits, radix: 16, least: 1)
    append("\"")
  }

  private mutating func append(digits value: UInt64, radix: UInt64, least: Int) {
    var rest = value
    let first = buffer.count
    while rest > 0 || buffer.count - first < least {
      let digit = UInt8(truncatingIfNeeded: rest % radix)
      buffer.append(digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
      rest /= radix
    }
    // A slice would be another holder of the bytes, and cost a copy of them all.
    var (low, high) = (first, buffer.count - 1)
    while low < high {
      buffer.swapAt(low, high)
      (low, high) = (low + 1, high - 1)
    }
  }

  private mutating func append(escaping text: String) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): buffer += [UInt8(ascii: "\\"), byte]
      case 0..<0x20:
        append("\\u00")
        append(digits: UInt64(byte), radix: 16, least: 2)
      default: buffer.append(byte)
      }
    }
  }
}
