import Platform
import RTP
import SRTP

/// The encryption of one track, RFC 3711: it opens the sender's packets, and closes our reports.
package final class TrackProtection {
  private let unprotector: PacketUnprotector
  private let protector: PacketProtector
  /// The memory of the packet that is being opened.
  private let packetMemory = PacketMemory()

  /// Creates the protection of a track.
  ///
  /// - Throws: ``ReceiverError/key(_:)``, also where libsrtp2 lacks the suite.
  package init(_ keys: TrackKeys) throws(ReceiverError) {
    do throws(SRTPError) {
      unprotector = try PacketUnprotector(keys.sender.key, streams: keys.sender.streams)
      protector = try PacketProtector(keys.control ?? keys.sender.key)
    } catch {
      throw .key("\(keys.sender.key.suite.rawValue): \(error)")
    }
  }

  /// The number of packets that were refused because their tag was wrong.
  var forged: UInt64 { unprotector.counts.forged }
  /// The number of packets that were refused for any reason.
  var refused: UInt64 { unprotector.counts.forged + unprotector.counts.replayed + unprotector.counts.excess }
  /// `true` once a packet had the right tag.
  var hasOpened: Bool { unprotector.accepted > 0 }

  /// Opens a packet, and lends it to `body`. A packet that is not the sender's is only counted.
  func open(_ packet: UnsafeRawBufferPointer, isControl: Bool, _ body: (UnsafeRawBufferPointer) -> Void) {
    let memory = packetMemory.bytes
    guard packet.count <= memory.count else { return }
    memory.copyMemory(from: packet)
    let count =
      isControl
      ? try? unprotector.unprotectControl(memory, count: packet.count)
      : try? unprotector.unprotect(memory, count: packet.count)
    if let count { body(rebased(memory, count)) }
  }

  /// Closes the datagram of RTCP in the first `count` bytes of `memory`, and returns it; nil where it must not be sent.
  func close(_ memory: UnsafeMutableRawBufferPointer, _ count: Int) -> UnsafeRawBufferPointer? {
    guard memory.count >= count + PacketProtector.controlRoom else { return nil }
    return (try? protector.protectControl(memory, count: count)).map { rebased(memory, $0) }
  }
}
