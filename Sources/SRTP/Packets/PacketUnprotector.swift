/// An unprotector that turns one sender's SRTP and SRTCP into RTP and RTCP (RFC 3711, RFC 7714), and refuses forged and
/// replayed packets. Use it from one thread.
package final class PacketUnprotector {
  /// The numbers of refused packets, by cause.
  package struct Counts: Hashable, Sendable {
    /// Packets without the right tag: forged, damaged, unencrypted, under another key, or too short for a tag.
    package var forged: UInt64 = 0
    /// Replayed packets, and those too old to be checked for replay.
    package var replayed: UInt64 = 0
    /// Packets of sources beyond the limit. Any holder of the key can invent sources.
    package var excess: UInt64 = 0

    /// Creates counts of 0.
    package init() {}
  }

  /// The packets refused so far.
  package private(set) var counts = Counts()
  /// The number of packets that were accepted.
  package private(set) var accepted: UInt64 = 0
  private let session: SRTPSession
  private let overhead: (media: Int, control: Int)
  /// The sources of the accepted packets, of which the library keeps state for ever.
  private var sources: Set<UInt32> = []

  /// The maximum number of sources. A sender takes another one each time that it begins anew.
  package static let sourceLimit = 1024
  /// The number of last packets among which a late one is accepted: more than a sender repeats on request.
  private static let window = 4096

  /// Creates an unprotector of packets under `key`.
  ///
  /// - Parameter streams: the sources that the sender names, with their rollover counters. Other sources begin at zero.
  /// - Throws: ``SRTPError/library(_:)``.
  package init(_ key: SRTPKey, streams: [MIKEYMessage.Stream] = []) throws(SRTPError) {
    session = try SRTPSession(key, .incoming, window: Self.window, streams: streams)
    overhead = (key.suite.packetOverhead, key.suite.controlOverhead)
  }

  /// Unprotects the RTP packet in the first `count` bytes of `memory` in place. Returns the new length.
  ///
  /// - Throws: ``SRTPError``, which is also counted.
  package func unprotect(_ memory: UnsafeMutableRawBufferPointer, count: Int) throws(SRTPError) -> Int {
    try take(memory, count, least: 12 + overhead.media, sourceOffset: 8) { base throws(SRTPError) in
      try session.unprotect(base, count: count)
    }
  }

  /// Unprotects the RTCP datagram in the first `count` bytes of `memory`, like ``unprotect(_:count:)``.
  ///
  /// - Throws: ``SRTPError``, which is also counted.
  package func unprotectControl(_ memory: UnsafeMutableRawBufferPointer, count: Int) throws(SRTPError) -> Int {
    try take(memory, count, least: 8 + overhead.control, sourceOffset: 4) { base throws(SRTPError) in
      try session.unprotectControl(base, count: count)
    }
  }

  private func take(
    _ memory: UnsafeMutableRawBufferPointer, _ count: Int, least: Int, sourceOffset: Int,
    _ unprotect: (UnsafeMutableRawPointer) throws(SRTPError) -> Int
  ) throws(SRTPError) -> Int {
    guard count >= least, count <= memory.count, let base = memory.baseAddress else {
      counts.forged &+= 1
      throw .tooShort(count)
    }
    let source = UInt32(bigEndian: base.loadUnaligned(fromByteOffset: sourceOffset, as: UInt32.self))
    guard sources.count < Self.sourceLimit || sources.contains(source) else {
      counts.excess &+= 1
      throw .tooManySources(limit: Self.sourceLimit)
    }
    do throws(SRTPError) {
      let length = try unprotect(base)
      sources.insert(source)
      accepted &+= 1
      return length
    } catch {
      if error == .replayed { counts.replayed &+= 1 } else { counts.forged &+= 1 }
      throw error
    }
  }
}
