import Media
import RTP

/// The packets of one access unit, or of a part of one, on their way to the viewers of one RTP stream.
///
/// A part has an object of its own: what the kernel and viewers were given of those before stays where it is. It holds
/// the coded picture that the packets' payloads lie in until the last viewer has got them.
final class OutgoingFrame {
  /// The packets.
  let batch = PacketBatch()
  /// The same as the kernel takes them.
  private(set) var messages = MessageVector()
  /// Where their payloads lie; nil while nobody needs them.
  var picture: CodedPicture?
  /// Whether these are the packets of a picture, and not of a clock alone.
  private(set) var isFrame = true
  /// Whether the picture begins with it.
  private(set) var isFirstPart = true
  /// Whether the picture ends with it.
  private(set) var isLastPart = true
  /// Whether decoding can begin with its picture.
  private(set) var isKeyFrame = false
  /// How many packets may have left by now: all, unless they are paced.
  private(set) var released = 0
  /// The most packets of one message, of these packets.
  private var segmentsLimit = OutgoingFrame.segments
  /// The most messages that one call gives to the kernel.
  private(set) var messagesAtATime = OutgoingFrame.messagesLimit
  /// Viewers that have not got all of it.
  var holders = 0

  /// Packets.
  var count: Int { batch.count }

  /// The RTP sequence number of the first packet; there must be one.
  var sequenceNumber: UInt16 { UInt16(batch[0].header[2]) << 8 | UInt16(batch[0].header[3]) }

  /// The most packets that go to the kernel at once, where they are paced.
  static let pacedSegments = 8
  /// The most packets of one message.
  static let segments = 64
  /// The most messages of one call: `UIO_MAXIOV`.
  static let messagesLimit = 1024

  /// An empty one.
  ///
  /// - Parameter without: What it is to do without: ``Optimization/gso`` and ``Optimization/mmsg``.
  init(without: Set<Optimization> = []) {
    if without.contains(.gso) { segmentsLimit = 1 }
    if without.contains(.mmsg) { messagesAtATime = 1 }
  }

  /// The last packets that were asked for by ``interleaved(_:channel:)``.
  private var interleaved: (packets: Range<Int>, channel: UInt8, bytes: InterleavedBytes)?

  /// Those made so far, of which the ones that nobody holds are made anew, so that a picture costs no allocation.
  private var made: [InterleavedBytes] = []
  /// How many are kept: connections hold some of them for a while.
  private static let madeLimit = 4

  /// Packets for a byte stream: the same object for all who ask for the same.
  func interleaved(_ packets: Range<Int>, channel: UInt8) -> InterleavedBytes {
    if let interleaved, interleaved.packets == packets, interleaved.channel == channel { return interleaved.bytes }
    interleaved = nil
    var count = packets.count * InterleavedBytes.headerBytes
    for index in packets { count += batch[index].count }
    let isEnd = isFrame && isLastPart && packets.upperBound == self.count
    let bytes = interleavedBytes(count: count, isFrame: isEnd) { memory in
      var end = memory
      for index in packets {
        let packet = batch[index]
        InterleavedBytes.append(packet.header, packet.payload, channel: channel, to: end)
        end += InterleavedBytes.headerBytes + packet.count
      }
    }
    interleaved = (packets, channel, bytes)
    return bytes
  }

  /// One that nobody holds any more, or a new one.
  private func interleavedBytes(
    count: Int, isFrame: Bool, fill: (UnsafeMutableRawPointer) -> Void
  ) -> InterleavedBytes {
    for index in made.indices where isKnownUniquelyReferenced(&made[index]) {
      made[index].refill(count: count, isFrame: isFrame, fill: fill)
      return made[index]
    }
    let new = InterleavedBytes(count: count, isFrame: isFrame, fill: fill)
    if made.count < Self.madeLimit { made.append(new) }
    return new
  }

  /// Lets go of what is needed no longer.
  func clear() {
    picture = nil
    interleaved = nil
  }

  /// Takes the packets in ``batch`` as they are; all of them may leave at once unless `isPaced`.
  func fill(
    isFrame: Bool = true, isKeyFrame: Bool, isPaced: Bool, isFirstPart: Bool = true, isLastPart: Bool = true
  ) {
    self.isFrame = isFrame
    self.isKeyFrame = isKeyFrame
    self.isFirstPart = isFirstPart
    self.isLastPart = isLastPart
    interleaved = nil
    messages.fill(from: batch, segments: min(isPaced ? Self.pacedSegments : Self.segments, segmentsLimit))
    released = 0
    release(isPaced ? 1 : count)
  }

  /// Lets the first `packets` packets leave, and what the kernel takes in one message with them.
  func release(_ packets: Int) {
    released = max(released, messages.boundary(from: min(packets, count)))
  }
}
