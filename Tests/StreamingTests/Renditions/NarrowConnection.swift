import Foundation
import Platform
import RTP
import Streaming
import Synchronization
import TestSupport

/// A connection of a viewer by RTSP over TCP, as the server writes it, whose network takes so many bits a second. It keeps all
/// that has come through, and tells the stream what that is.
final class NarrowConnection: @unchecked Sendable {
  // Sendable: all is under the mutex, but for `transport`, which is set once before the viewer joins.
  private struct State {
    /// Bits a second; nil for a network that takes all.
    var rate: Double?
    var isSilent = false
    var waiting: [(bytes: ArraySlice<UInt8>, isFrame: Bool)] = []
    var credit = 0.0
    var given = 0
    var delivered = 0
    var log = SentLog()
    var arrived: [UInt8] = []
    var isOver = false
  }
  private let state = Mutex(State())
  private(set) var transport: InterleavedTransport?
  private let hasEnded = DispatchSemaphore(value: 0)

  /// Bits a second; nil for a network that takes all.
  var rate: Double? {
    get { state.withLock { $0.rate } }
    set { state.withLock { $0.rate = newValue } }
  }

  /// `true` if it tells the stream nothing.
  var isSilent: Bool {
    get { state.withLock { $0.isSilent } }
    set { state.withLock { $0.isSilent = newValue } }
  }

  init() throws {
    transport = try InterleavedTransport(media: 0, control: 1) { [weak self] in self?.take($0) }
    let thread = Thread { [unowned self] in run() }
    thread.start()
  }

  deinit {
    state.withLock { $0.isOver = true }
    hasEnded.wait()
  }

  private func take(_ bytes: InterleavedBytes) {
    if bytes.isFrame { transport?.frameWasTaken() }
    let isThrough = state.withLock { state in
      state.given += bytes.count
      state.log.note(position: Int64(state.given), packets: 0, bytes: bytes.count, at: .now())
      guard state.rate == nil, state.waiting.isEmpty else {
        state.waiting.append((Array(bytes.bytes)[...], bytes.isFrame))
        return false
      }
      // A network that takes all does not depend on how busy this machine is.
      state.arrived += bytes.bytes
      state.delivered += bytes.count
      return true
    }
    if isThrough, bytes.isFrame { transport?.frameHasLeft() }
  }

  private func run() {
    defer { hasEnded.signal() }
    var before = Instant.now()
    var told = before
    while !state.withLock({ $0.isOver }) {
      usleep(4000)
      let now = Instant.now()
      let (left, sample) = state.withLock { state -> (Int, ReceptionSample?) in
        let rate = state.rate ?? 1e12
        // What nobody has sent meanwhile is no room for later.
        state.credit = (state.waiting.isEmpty ? 0 : state.credit) + rate / 8 * (now - before).seconds
        var left = 0
        while let first = state.waiting.first, state.credit >= 1 {
          let part = first.bytes.prefix(Int(min(state.credit, 1e9)))
          state.credit -= Double(part.count)
          state.arrived += part
          state.delivered += part.count
          state.waiting[0].bytes = first.bytes.dropFirst(part.count)
          guard state.waiting[0].bytes.isEmpty else { break }
          if first.isFrame { left += 1 }
          state.waiting.removeFirst()
        }
        if state.rate == nil { state.credit = 0 }
        guard !state.isSilent, (now - told).seconds >= 0.03,
          let place = state.log.place(of: Int64(state.delivered), at: now)
        else {
          return (left, nil)
        }
        told = now
        return (
          left,
          ReceptionSample(
            delivered: state.delivered, age: place.age, waiting: place.waiting,
            outstanding: state.given - state.delivered)
        )
      }
      before = now
      for _ in 0..<left { transport?.frameHasLeft() }
      if let sample { transport?.note(sample) }
    }
  }

  /// The RTP packets that have come through.
  var packets: [[UInt8]] {
    let bytes = state.withLock { $0.arrived }
    var packets: [[UInt8]] = []
    var place = 0
    while place + 4 <= bytes.count {
      let count = Int(bytes[place + 2]) << 8 | Int(bytes[place + 3])
      // The last one may have come in part.
      guard place + 4 + count <= bytes.count else { break }
      if bytes[place + 1] == 0 { packets.append(Array(bytes[place + 4..<place + 4 + count])) }
      place += 4 + count
    }
    return packets
  }
}

/// The pictures of packets of one stream, and what is the matter with their numbers.
struct ReceivedPictures {
  /// The Annex B bytes of all whole pictures.
  private(set) var stream: [UInt8] = []
  /// The timestamps of these pictures, by the first one's.
  private(set) var timestamps: [Int] = []
  /// The same as the packets have them.
  private(set) var rawTimestamps: [UInt32] = []
  /// The number of pictures that lack a part.
  private(set) var damaged = 0
  private(set) var sources: Set<UInt32> = []
  /// The numbers that came twice, or after a later one.
  private(set) var repeated = 0

  init(_ packets: [[UInt8]]) throws {
    var depacketizer = H264Depacketizer()
    var last: (number: UInt16, timestamp: UInt32)?
    var time = 0
    for packet in packets {
      let header = try packet.withUnsafeBytes { try RTPPacket(parsing: $0).header }
      sources.insert(header.ssrc)
      if let last {
        if Int16(bitPattern: header.sequenceNumber &- last.number) <= 0 { repeated += 1 }
      }
      last = (header.sequenceNumber, header.timestamp)
      try packet.withUnsafeBytes { bytes in
        try depacketizer.receive(bytes) { unit in
          guard !unit.isDamaged, unit.count > 0 else { return damaged += 1 }
          stream += unit.annexB
          if let first { time += Int(Int32(bitPattern: unit.timestamp &- first)) }
          first = unit.timestamp
          timestamps.append(time)
          rawTimestamps.append(unit.timestamp)
        }
      }
    }
  }

  private var first: UInt32?
}
