public import Media

/// When which missing packet is asked for, and when it is given up.
struct NACKScheduler: ~Copyable {
  private struct Entry {
    var detected = MediaTime.zero
    var next = MediaTime.zero
    var asked = MediaTime.zero
    var tries = 0
    var isMissing = false
  }

  /// How often and how long is asked.
  let policy: RetransmissionPolicy
  /// Packets that are missing now.
  private(set) var count = 0
  /// How long an answer takes, from packets that came after one request; nil before the first.
  private(set) var roundTrip: MediaTime?

  private let entries: UnsafeMutablePointer<Entry>
  private let capacity: Int

  /// A scheduler of a window of `capacity` sequence numbers, a power of two.
  init(_ policy: RetransmissionPolicy, capacity: Int) {
    self.policy = policy
    self.capacity = capacity
    entries = .allocate(capacity: capacity)
    entries.initialize(repeating: Entry(), count: capacity)
  }

  deinit {
    entries.deallocate()
  }

  /// The memory that it has, in bytes; always the same.
  var memoryBytes: Int { capacity * MemoryLayout<Entry>.stride }

  /// Forgets everything that is missing.
  mutating func removeAll() {
    entries.update(repeating: Entry(), count: capacity)
    count = 0
  }

  /// `sequenceNumber` was found missing at `time`.
  mutating func add(_ sequenceNumber: UInt16, at time: MediaTime) {
    let place = place(sequenceNumber)
    if !entries[place].isMissing { count += 1 }
    entries[place] = Entry(detected: time, next: time + policy.firstDelay, isMissing: true)
  }

  /// `sequenceNumber` came at `time`, or is given up; returns how often it had been asked for, nil where it was not
  /// missing.
  @discardableResult
  mutating func remove(_ sequenceNumber: UInt16, cameAt time: MediaTime? = nil) -> Int? {
    let place = place(sequenceNumber)
    let entry = entries[place]
    guard entry.isMissing else { return nil }
    entries[place].isMissing = false
    count -= 1
    // Only after a single request is it known which one was answered (Karn).
    if let time, entry.tries == 1 {
      let sample = MediaTime(nanoseconds: max(0, (time - entry.asked).nanoseconds))
      roundTrip = roundTrip.map { MediaTime(nanoseconds: ($0.nanoseconds * 7 + sample.nanoseconds) / 8) } ?? sample
    }
    return entry.tries
  }

  /// Whether `sequenceNumber` is missing and may still come.
  func isMissing(_ sequenceNumber: UInt16) -> Bool { entries[place(sequenceNumber)].isMissing }

  /// When `sequenceNumber` is given up; nil where it is not missing.
  func deadline(of sequenceNumber: UInt16) -> MediaTime? {
    let entry = entries[place(sequenceNumber)]
    return entry.isMissing ? entry.detected + policy.lifetime : nil
  }

  /// When the next request between `head` and `end` is due; nil for none.
  func nextRequest(from head: UInt16, to end: UInt16) -> MediaTime? {
    guard count > 0 else { return nil }
    var earliest: MediaTime?
    var sequenceNumber = head
    while sequenceNumber != end {
      let entry = entries[place(sequenceNumber)]
      if entry.isMissing, entry.tries < policy.tries { earliest = min(earliest ?? entry.next, entry.next) }
      sequenceNumber &+= 1
    }
    return earliest
  }

  /// Writes the entries of a NACK for what is due at `time` between `head` and `end`, as many as `list` has room
  /// for, and counts them as asked for. Returns how many entries there are.
  mutating func request(
    from head: UInt16, to end: UInt16, at time: MediaTime, into list: UnsafeMutableBufferPointer<NACKEntry>
  ) -> Int {
    guard count > 0 else { return 0 }
    var used = 0
    var sequenceNumber = head
    while sequenceNumber != end {
      defer { sequenceNumber &+= 1 }
      let place = place(sequenceNumber)
      guard entries[place].isMissing, entries[place].tries < policy.tries, entries[place].next <= time else { continue }
      let distance = used > 0 ? sequenceNumber &- list[used - 1].packetID : .max
      if distance <= 16 {
        list[used - 1].followers |= 1 << (distance - 1)
      } else {
        guard used < list.count else { break }
        list[used] = NACKEntry(packetID: sequenceNumber)
        used += 1
      }
      entries[place].tries += 1
      entries[place].asked = time
      entries[place].next = time + interval
    }
    return used
  }

  /// One and a half round trips, so that a late answer is not asked for twice; never so short that it floods.
  private var interval: MediaTime {
    guard let roundTrip else { return policy.interval }
    let wanted = max(MediaTime(nanoseconds: 20_000_000), MediaTime(nanoseconds: roundTrip.nanoseconds / 2 * 3))
    return min(wanted, policy.interval)
  }

  private func place(_ sequenceNumber: UInt16) -> Int { Int(sequenceNumber) & (capacity - 1) }
}

/// How a receiver asks for packets again.
public struct RetransmissionPolicy: Hashable, Sendable {
  /// How often one packet is asked for; 0 asks for none, and only waits for reordered ones.
  public var tries: Int
  /// How long after a gap was seen it is asked for: what comes within is only reordered.
  public var firstDelay: MediaTime
  /// The longest time between two requests for one packet; less where answers come faster.
  public var interval: MediaTime
  /// How long a missing packet holds up those behind it.
  public var lifetime: MediaTime

  /// A policy; by default three tries within 200 ms.
  public init(
    tries: Int = 3, firstDelay: MediaTime = MediaTime(nanoseconds: 5_000_000),
    interval: MediaTime = MediaTime(nanoseconds: 55_000_000),
    lifetime: MediaTime = MediaTime(nanoseconds: 200_000_000)
  ) {
    self.tries = max(tries, 0)
    self.firstDelay = firstDelay
    self.interval = interval
    self.lifetime = lifetime
  }

  /// No requests: a gap is waited for 30 ms, as long as packets are usually reordered.
  public static let reorderOnly = RetransmissionPolicy(tries: 0, lifetime: MediaTime(nanoseconds: 30_000_000))
}
