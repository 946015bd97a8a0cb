import RTP

/// An unprotector that turns the SRTCP of one viewer into RTCP, and refuses forged and replayed datagrams. Use it
/// from one thread.
///
/// Use one unprotector per viewer, even if several share a key. Two viewers may choose the same source, and the
/// packets of one would count as replays of the other.
package final class ControlUnprotector {
  /// The numbers of refused datagrams, by cause.
  package struct Counts: Hashable, Sendable {
    /// Datagrams without the right tag: forged, damaged, unencrypted, under another key, or too short for a tag.
    package var forged: UInt64 = 0
    /// Replayed datagrams, and those too old to be checked for replay.
    package var replayed: UInt64 = 0
    /// Datagrams with our own source, which were reflected, perhaps by a group of which this host is a member.
    package var reflected: UInt64 = 0
    /// Datagrams of sources beyond the limit. Any holder of the key can invent sources.
    package var excess: UInt64 = 0

    /// Creates counts of 0.
    package init() {}

    /// Returns the sums of both.
    package static func + (left: Counts, right: Counts) -> Counts {
      var sum = left
      sum.forged &+= right.forged
      sum.replayed &+= right.replayed
      sum.reflected &+= right.reflected
      sum.excess &+= right.excess
      return sum
    }
  }

  /// The datagrams refused so far.
  package private(set) var counts = Counts()
  private var session: SRTPSession
  private let key: SRTPKey
  /// The sources of the accepted datagrams.
  private var sources: Set<UInt32> = []
  private var media: UInt32
  private let least: Int

  /// The maximum number of sources: the members of a group that are heard.
  package static let sourceLimit = 256

  /// Creates an unprotector.
  ///
  /// - Parameters:
  ///   - key: The viewer's key, which is the stream's.
  ///   - media: The stream's source. SRTCP with this source is our own.
  /// - Throws: ``SRTPError/library(_:)``.
  package init(_ key: SRTPKey, media: UInt32) throws(SRTPError) {
    session = try SRTPSession(key, .incoming)
    self.key = key
    self.media = media
    least = 8 + key.suite.controlOverhead
  }

  /// Changes the stream's source. Some receivers change their own source each time. Before there are too many, the
  /// unprotector discards all sources and their replay state. A datagram replayed after that refers to a source that
  /// no longer exists.
  package func changeMedia(to ssrc: UInt32) {
    media = ssrc
    guard sources.count > Self.sourceLimit / 2, let anew = try? SRTPSession(key, .incoming) else { return }
    session = anew
    sources.removeAll()
  }

  /// Unprotects the datagram in the first `count` bytes of `memory` in place. Returns the new length.
  ///
  /// - Throws: ``SRTPError``, which is also counted.
  package func unprotect(_ memory: UnsafeMutableRawBufferPointer, count: Int) throws(SRTPError) -> Int {
    guard count >= least, count <= memory.count, let base = memory.baseAddress else {
      counts.forged &+= 1
      throw .tooShort(count)
    }
    let source = UInt32(bigEndian: base.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
    guard source != media else {
      counts.reflected &+= 1
      throw .reflected
    }
    guard sources.count < Self.sourceLimit || sources.contains(source) else {
      counts.excess &+= 1
      throw .tooManySources(limit: Self.sourceLimit)
    }
    do throws(SRTPError) {
      let length = try session.unprotectControl(base, count: count)
      sources.insert(source)
      return length
    } catch {
      if error == .replayed { counts.replayed &+= 1 } else { counts.forged &+= 1 }
      throw error
    }
  }
}
