public import Platform

/// A schedule of requests for missing packets, which also decides when a packet is given up.
struct NACKScheduler: ~Copyable {
  private struct Entry {
    var detected = Instant.zero
    var next = Instant.zero
    var asked = Instant.zero
    var tries = 0
    var isMissing = false
  }

  /// The number and timing of the requests.
  let policy: RetransmissionPolicy
  /// The number of packets that are missing now.
  private(set) var count = 0
  /// The time until an answer, measured on packets that came after one request; `nil` before the first.
  private(set) var roundTrip: Duration?

  private let entries: UnsafeMutablePointer<Entry>
  private let capacity: Int

  /// Creates a scheduler for a window of `capacity` sequence numbers, a power of two.
  init(_ policy: RetransmissionPolicy, capacity: Int) {
    self.policy = policy
    self.capacity = capacity
    entries = .allocate(capacity: capacity)
    entries.initialize(repeating: Entry(), count: capacity)
  }

  deinit {
    entries.deallocate()
  }

  /// The scheduler's memory in bytes, a constant.
  var memoryBytes: Int { capacity * MemoryLayout<Entry>.stride }

  /// Clears the list of missing packets.
  mutating func removeAll() {
    entries.update(repeating: Entry(), count: capacity)
    count = 0
  }

  /// Records that `sequenceNumber` was found missing at `time`.
  mutating func add(_ sequenceNumber: UInt16, at time: Instant) {
    let place = place(sequenceNumber)
    if !entries[place].isMissing { count += 1 }
    entries[place] = Entry(detected: time, next: time + policy.firstDelay, isMissing: true)
  }

  /// Records that `sequenceNumber` arrived at `time`, or is given up. Returns the number of requests for it; `nil` if
  /// it was not missing.
  @discardableResult
  mutating func remove(_ sequenceNumber: UInt16, cameAt time: Instant? = nil) -> Int? {
    let place = place(sequenceNumber)
    let entry = entries[place]
    guard entry.isMissing else { return nil }
    entries[place].isMissing = false
    count -= 1
    // Only after a single request is it certain which request was answered (Karn).
    if let time, entry.tries == 1 {
      let sample = Duration(nanoseconds: max(0, (time - entry.asked).nanoseconds))
      roundTrip = roundTrip.map { Duration(nanoseconds: ($0.nanoseconds * 7 + sample.nanoseconds) / 8) } ?? sample
    }
    return entry.tries
  }

  /// Returns `true` if `sequenceNumber` is missing and may still arrive.
  func isMissing(_ sequenceNumber: UInt16) -> Bool { entries[place(sequenceNumber)].isMissing }

  /// Returns the time at which `sequenceNumber` is given up; `nil` if it is not missing.
  func deadline(of sequenceNumber: UInt16) -> Instant? {
    let entry = entries[place(sequenceNumber)]
    return entry.isMissing ? entry.detected + policy.lifetime : nil
  }

  /// Returns the time of the next request between `head` and `end`; `nil` for none.
  func nextRequest(from head: UInt16, to end: UInt16) -> Instant? {
    guard count > 0 else { return nil }
    var earliest: Instant?
    var sequenceNumber = head
    while sequenceNumber != end {
      let entry = entries[place(sequenceNumber)]
      if entry.isMissing, entry.tries < policy.tries { earliest = min(earliest ?? entry.next, entry.next) }
      sequenceNumber &+= 1
    }
    return earliest
  }

  /// Writes the entries of a NACK for the packets due at `time` between `head` and `end`, as many as `list` has room
  /// for. Counts these packets as requested, and returns the number of entries.
  mutating func request(
    from head: UInt16, to end: UInt16, at time: Instant, into list: UnsafeMutableBufferPointer<NACKEntry>
  ) -> Int {
    guard count > 0 else { return 0 }
    var used = 0
    var sequenceNumber = head
    while sequenceNumber != end {
      defer { sequenceNumber &+= 1 }
      let place = place(sequenceNumber)
      var entry = entries[place]
      guard entry.isMissing, entry.tries < policy.tries, entry.next <= time else { continue }
      let distance = used > 0 ? sequenceNumber &- list[used - 1].packetID : .max
      if distance <= 16 {
        list[used - 1].followers |= 1 << (distance - 1)
      } else {
        guard used < list.count else { break }
        list[used] = NACKEntry(packetID: sequenceNumber)
        used += 1
      }
      entry.tries += 1
      entry.asked = time
      entry.next = time + interval
      entries[place] = entry
    }
    return used
  }

  /// One and a half round trips, so that a late answer is not requested twice. A minimum keeps requests from flooding
  /// the sender.
  private var interval: Duration {
    guard let roundTrip else { return policy.interval }
    let wanted = max(Duration.milliseconds(20), Duration(nanoseconds: roundTrip.nanoseconds / 2 * 3))
    return min(wanted, policy.interval)
  }

  private func place(_ sequenceNumber: UInt16) -> Int { Int(sequenceNumber) & (capacity - 1) }
}

/// The rules by which a receiver requests retransmissions.
public struct RetransmissionPolicy: Hashable, Sendable {
  /// The maximum number of requests for one packet. 0 requests none, and only waits for reordered packets.
  public var tries: Int
  /// The time between the detection of a gap and the first request. A packet that comes within this time is only
  /// reordered.
  public var firstDelay: Duration
  /// The maximum time between two requests for one packet; shorter if answers come faster.
  public var interval: Duration
  /// The time for which a missing packet delays those after it.
  public var lifetime: Duration

  /// Creates a policy; by default three tries within 200 ms.
  public init(
    tries: Int = 3, firstDelay: Duration = .milliseconds(5),
    interval: Duration = .milliseconds(55),
    lifetime: Duration = .milliseconds(200)
  ) {
    self.tries = max(tries, 0)
    self.firstDelay = firstDelay
    self.interval = interval
    self.lifetime = lifetime
  }

  /// A policy without requests: it waits 30 ms at a gap, the usual extent of reordering.
  public static let reorderOnly = RetransmissionPolicy(tries: 0, lifetime: .milliseconds(30))
}
