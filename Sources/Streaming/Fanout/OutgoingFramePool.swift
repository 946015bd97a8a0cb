import RTP

/// The frames of one RTP stream, and who holds them. Used by the send thread alone.
///
/// A frame's holders are counted: the stream while it fills and sends the frame, its pacing, and each viewer on whose
/// way the frame is. These invariants hold between any two calls:
///
/// - A frame of the pool is free exactly while it has no holder. Then it holds no picture and no packets for others.
/// - A frame with holders holds its picture once for all of them, whatever their number. With its last holder the frame
///   gives the picture back to the queue, and is free.
/// - Only ``take(holding:)`` makes the first holder. A further one comes from a present one.
final class OutgoingFramePool {
  private var free: [OutgoingFrame] = []
  private let pictures: CodedPictureQueue
  private let sending: PacketSending
  /// The number of frames made so far. One is made only while no other is free.
  private(set) var count = 0

  /// Creates an empty pool.
  ///
  /// - Parameters:
  ///   - pictures: takes back a picture that no frame needs.
  ///   - sending: the limits of messages and calls.
  init(pictures: CodedPictureQueue, _ sending: PacketSending = PacketSending()) {
    self.pictures = pictures
    self.sending = sending
  }

  /// The number of frames that have holders.
  var held: Int { count - free.count }

  /// Returns a frame without packets for the payloads in `picture`, or for payloads of its own. The caller is its only
  /// holder.
  func take(holding picture: CodedPicture? = nil) -> OutgoingFrame {
    let frame = free.popLast() ?? make()
    frame.batch.removeAll()
    frame.picture = picture
    if let picture { pictures.addHolder(of: picture) }
    frame.addHolder()
    return frame
  }

  private func make() -> OutgoingFrame {
    count += 1
    // Room for all frames, so that none costs an allocation when it comes back.
    free.reserveCapacity(count)
    return OutgoingFrame(sending, pool: self)
  }

  /// Takes back a frame that has lost its last holder.
  func takeBack(_ frame: OutgoingFrame) {
    if let picture = frame.picture { pictures.release(picture) }
    frame.clear()
    free.append(frame)
  }
}
