package import Platform

/// The times at which packets, or bytes of a connection, left for one viewer. By them, a report about the newest packet
/// that has arrived tells how long the path takes.
///
/// The log allocates at its creation alone. What is older than the log counts as the oldest that it has.
package struct SentLog: Sendable {
  /// Packets that left together.
  private struct Entry {
    /// The position of the last one: its sequence number, extended, or the end of the bytes in a connection.
    var position: Int64 = 0
    /// The packets and the bytes so far, these included.
    var packets = 0
    var bytes = 0
    var began = Instant.zero
    /// The time at which the last one left.
    var time = Instant.zero
  }

  /// The sum of all that was sent up to a position.
  package struct Place: Hashable, Sendable {
    /// The packets up to the position.
    package var packets: Int
    /// Their bytes.
    package var bytes: Int
    /// The age of the last one of them.
    package var age: Duration
    /// The age of the first one behind the position; zero where there is none.
    package var waiting: Duration

    /// Creates a place.
    package init(packets: Int, bytes: Int, age: Duration, waiting: Duration) {
      self.packets = packets
      self.bytes = bytes
      self.age = age
      self.waiting = waiting
    }

    /// Returns the bytes that have arrived where `lost` of the packets have not.
    package func arrivedBytes(lost: Int) -> Int {
      packets > 0 ? bytes - Int(Double(bytes) * Double(max(0, min(lost, packets))) / Double(packets)) : bytes
    }
  }

  private var entries: [Entry]
  private var count = 0

  /// The most entries: four seconds of packets that leave one by one, which may wait on a path for so long.
  private static let capacity = 1024
  /// The time within which packets count as having left together.
  private static let together = Duration.milliseconds(4)

  /// Creates an empty log.
  package init() { entries = Array(repeating: Entry(), count: Self.capacity) }

  /// Forgets all that has left.
  package mutating func reset() { count = 0 }

  private var newest: Int { (count - 1) % Self.capacity }

  /// The packets that left so far.
  package var packets: Int { count == 0 ? 0 : entries[newest].packets }
  /// The bytes that left so far.
  package var bytes: Int { count == 0 ? 0 : entries[newest].bytes }

  /// Notes packets that have left.
  ///
  /// - Parameters:
  ///   - position: the position of the last one, greater than all before.
  ///   - packets: their number.
  ///   - bytes: their bytes, with the headers of IP and of the transport.
  package mutating func note(position: Int64, packets: Int, bytes: Int, at now: Instant) {
    var entry = Entry(position: position, packets: packets, bytes: bytes, began: now, time: now)
    if count > 0 {
      let last = entries[newest]
      entry.packets += last.packets
      entry.bytes += last.bytes
      if now - last.began < Self.together {
        entry.began = last.began
        entries[newest] = entry
        return
      }
    }
    entries[count % Self.capacity] = entry
    count += 1
  }

  /// Returns what was sent up to `position`; nil where nothing was sent.
  package func place(of position: Int64, at now: Instant) -> Place? {
    guard count > 0 else { return nil }
    let index = firstIndex { $0.position >= position }
    guard index < count else {
      let last = entries[newest]
      return Place(packets: last.packets, bytes: last.bytes, age: now - last.time, waiting: .zero)
    }
    let entry = entries[index % Self.capacity]
    let isForgotten = index > 0 && index == count - Self.capacity
    let isWhole = isForgotten || entry.position == position
    var before = Entry()
    if index == 0 {
      before.position = entry.position - Int64(entry.packets > 0 ? entry.packets : entry.bytes)
    } else if !isForgotten {
      before = entries[(index - 1) % Self.capacity]
    }
    // Between two entries, positions and packets advance together.
    let span = entry.position - before.position
    let share = isWhole || span <= 0 ? 1 : max(0, min(1, Double(position - before.position) / Double(span)))
    let waiting: Duration
    if !isWhole {
      waiting = now - entry.time
    } else {
      waiting = index + 1 < count ? now - entries[(index + 1) % Self.capacity].time : .zero
    }
    return Place(
      packets: before.packets + Int(Double(entry.packets - before.packets) * share),
      bytes: before.bytes + Int(Double(entry.bytes - before.bytes) * share), age: now - entry.time, waiting: waiting)
  }

  /// Returns the index of the first entry that satisfies `isReached`, as all later ones do; ``count`` where none does.
  private func firstIndex(where isReached: (Entry) -> Bool) -> Int {
    var (low, high) = (max(0, count - Self.capacity), count)
    while low < high {
      let middle = (low + high) / 2
      if isReached(entries[middle % Self.capacity]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// Returns the age of the byte behind the first `bytes` that left, or a lesser age where that is forgotten; nil where
  /// it has not left.
  package func age(ofByte bytes: Int, at now: Instant) -> Duration? {
    let index = firstIndex { $0.bytes > bytes }
    return index < count ? now - entries[index % Self.capacity].time : nil
  }

  /// Returns the bits a second that left in the last `seconds`.
  package func rate(over seconds: Double, until now: Instant) -> Double {
    guard count > 0 else { return 0 }
    var index = count
    while index > 0, index > count - Self.capacity,
      (now - entries[(index - 1) % Self.capacity].time).seconds < seconds
    {
      index -= 1
    }
    let before = index > 0 && index > count - Self.capacity ? entries[(index - 1) % Self.capacity].bytes : 0
    let sent = entries[newest].bytes - before
    return Double(sent) * 8 / seconds
  }
}
