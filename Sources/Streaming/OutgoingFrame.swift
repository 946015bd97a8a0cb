import Media
import RTP

/// The packets of one access unit on their way to the viewers of one RTP stream.
///
/// It holds the coded picture that the packets' payloads lie in until the last viewer has got them.
final class OutgoingFrame {
  /// The packets.
  let batch = PacketBatch()
  /// The same as the kernel takes them.
  private(set) var messages = MessageVector()
  /// Where their payloads lie; nil while nobody needs them.
  var picture: CodedPicture?
  /// Whether decoding can begin with it.
  private(set) var isKeyFrame = false
  /// How many packets may have left by now: all, unless they are paced.
  private(set) var released = 0
  /// Viewers that have not got all of it.
  var holders = 0

  /// Packets.
  var count: Int { batch.count }

  /// The most packets that go to the kernel at once, where they are paced.
  static let pacedSegments = 8
  /// The most packets of one message.
  static let segments = 64

  /// Takes the packets in ``batch`` as they are; all of them may leave at once unless `isPaced`.
  func fill(isKeyFrame: Bool, isPaced: Bool) {
    self.isKeyFrame = isKeyFrame
    messages.fill(from: batch, segments: isPaced ? Self.pacedSegments : Self.segments)
    released = 0
    release(isPaced ? 1 : count)
  }

  /// Lets the first `packets` packets leave, and what the kernel takes in one message with them.
  func release(_ packets: Int) {
    released = max(released, messages.boundary(from: min(packets, count)))
  }
}
