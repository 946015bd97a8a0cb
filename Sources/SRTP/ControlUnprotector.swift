import RTP

/// Makes RTCP of the SRTCP that one viewer sends, and refuses what is forged or came before. Used by one thread.
///
/// One for each viewer, also where several share a key: two may choose the same source, and one's packets would
/// pass for the other's repeated.
public final class ControlUnprotector {
  /// Datagrams that were refused, by cause.
  public struct Counts: Hashable, Sendable {
    /// Without the right tag: forged, damaged, in the clear, of another key; or too short to have one.
    public var forged: UInt64 = 0
    /// They came before, or are too old to tell.
    public var replayed: UInt64 = 0
    /// With our own source: what we have sent, sent back; by a group too, where this machine is a member.
    public var reflected: UInt64 = 0
    /// Of one source more than are listened to, which a key's holder can make up as he likes.
    public var excess: UInt64 = 0

    /// Nothing yet.
    public init() {}
  }

  /// What was refused so far.
  public private(set) var counts = Counts()
  private var session: SRTPSession
  private let key: SRTPKey
  /// The sources of what was taken so far.
  private var sources: Set<UInt32> = []
  private var media: UInt32
  private let least: Int

  /// The most sources: the members of a group that are heard.
  public static let sourceLimit = 256

  /// - Parameters:
  ///   - key: The viewer's, which is the stream's.
  ///   - media: The stream's source: SRTCP that bears it is our own.
  /// - Throws: ``SRTPError/library(_:)``.
  public init(_ key: SRTPKey, media: UInt32) throws(SRTPError) {
    session = try SRTPSession(key, .incoming)
    self.key = key
    self.media = media
    least = 8 + key.suite.controlOverhead
  }

  /// The stream goes on as another source. Some receivers are another one each time then: before there are too many, all are
  /// forgotten, and with them what they have sent. What is sent once more then speaks of a source that is gone.
  public func changeMedia(to ssrc: UInt32) {
    media = ssrc
    guard sources.count > Self.sourceLimit / 2, let anew = try? SRTPSession(key, .incoming) else { return }
    session = anew
    sources.removeAll()
  }

  /// Makes RTCP of the datagram in the first `count` bytes of `memory`, in place; its new length.
  ///
  /// - Throws: ``SRTPError``, and counts it.
  public func unprotect(_ memory: UnsafeMutableRawBufferPointer, count: Int) throws(SRTPError) -> Int {
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
