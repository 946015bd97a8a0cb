package import Media
package import Platform

/// A maker of RTP packets from a track's access units, in one payload format.
///
/// A packetizer is a value that changes in place. It allocates nothing for an access unit, once the batch has room.
package protocol Packetizer: Sendable {
  /// The stream's sequence numbers and counts.
  var stream: RTPStream { get }

  /// Appends the packets of an access unit, or of a part of one, to `batch`, which may borrow the unit's bytes.
  mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch)

  /// Appends the packets of an access unit of the sound that shares the stream with the pictures, where the payload
  /// format has such a sound. It may be called between any two whole pictures.
  mutating func packetize(sound unit: borrowing AccessUnit, into batch: PacketBatch)

  /// Continues as another source; see ``RTPStream``.
  mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16)

  /// Appends packets that carry the clock alone, at `time`, where ``PayloadFormat/repeatsClock``.
  mutating func keepAlive(at time: Instant, into batch: PacketBatch)
}

extension Packetizer {
  /// Appends nothing: sound is a stream of its own.
  package mutating func packetize(sound unit: borrowing AccessUnit, into batch: PacketBatch) {}

  /// Appends nothing: RTP's own timestamps are the clock.
  package mutating func keepAlive(at time: Instant, into batch: PacketBatch) {}
}

/// A packetizer of any payload format that changes in place, with one dynamic call. An existential of a value, or an enum
/// of values, may copy it out and back. One thread uses it.
package protocol PacketizerReference: AnyObject {
  /// The stream's sequence numbers and counts.
  var stream: RTPStream { get }
  /// Appends the packets of an access unit; see ``Packetizer``.
  func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch)
  /// Appends the packets of an access unit of sound; see ``Packetizer``.
  func packetize(sound unit: borrowing AccessUnit, into batch: PacketBatch)
  /// Continues as another source; see ``RTPStream``.
  func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16)
  /// Appends packets that carry the clock alone; see ``Packetizer``.
  func keepAlive(at time: Instant, into batch: PacketBatch)
}

/// A packetizer in a place of its own.
final class PacketizerBox<Base: Packetizer>: PacketizerReference {
  private var base: Base

  init(_ base: Base) { self.base = base }

  var stream: RTPStream { base.stream }
  func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) { base.packetize(unit, into: batch) }
  func packetize(sound unit: borrowing AccessUnit, into batch: PacketBatch) { base.packetize(sound: unit, into: batch) }
  func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    base.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }
  func keepAlive(at time: Instant, into batch: PacketBatch) { base.keepAlive(at: time, into: batch) }
}
