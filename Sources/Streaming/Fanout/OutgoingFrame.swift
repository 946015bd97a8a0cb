package import RTP

/// The packets of one access unit, or of a part of one, on their way to the viewers of one RTP stream.
///
/// Each part has an object of its own: the packets of earlier parts, which the kernel and viewers hold, stay in place.
/// The object holds the coded picture with the packets' payloads until the last viewer has got them.
package final class OutgoingFrame {
  /// The packets.
  package let batch = PacketBatch()
  // `exclusivity(unchecked)`: nothing of the frame is called while one of these changes. See ``Viewer``.
  /// The packets in the form that the kernel takes.
  @exclusivity(unchecked) package private(set) var messages = MessageVector()
  /// The picture that holds their payloads; nil while no viewer needs them.
  @exclusivity(unchecked) package var picture: CodedPicture?
  /// `true` if these are the packets of an access unit of the track, and not of a clock or of sound beside pictures.
  private(set) var isFrame = true
  /// `true` if the picture begins with this part.
  private(set) var isFirstPart = true
  /// `true` if the picture ends with this part.
  private(set) var isLastPart = true
  /// `true` if decoding can begin with the picture.
  private(set) var isKeyFrame = false
  /// `true` if frames that have not begun to leave are of no use any more: a key frame, where other frames are not.
  private(set) var replacesWaiting = false
  /// The number of packets that may have left by now: all, unless they are paced.
  @exclusivity(unchecked) package private(set) var released = 0
  /// The most packets of one message, of these packets.
  let segmentsLimit: Int
  /// The most messages that one call gives to the kernel.
  let messagesAtATime: Int
  /// The number of objects that still need it; see ``OutgoingFramePool``.
  @exclusivity(unchecked) package private(set) var holders = 0
  /// Takes the frame back without a holder; nil where the frame has one owner for good.
  private unowned let pool: OutgoingFramePool?

  /// The number of packets.
  package var count: Int { batch.count }

  /// The RTP sequence number of the first packet; there must be one.
  package var sequenceNumber: UInt16 { UInt16(batch[0].header[2]) << 8 | UInt16(batch[0].header[3]) }

  /// The most packets that go to the kernel at once, where they are paced.
  static let pacedSegments = 8
  /// The most packets of one message.
  static let segments = 64
  /// The most messages of one call: `UIO_MAXIOV`.
  static let messagesLimit = 1024

  /// Creates an empty frame.
  ///
  /// - Parameters:
  ///   - sending: the limits of messages and calls.
  ///   - pool: outlives the frame's holders.
  package init(_ sending: PacketSending = PacketSending(), pool: OutgoingFramePool? = nil) {
    self.pool = pool
    segmentsLimit = sending.segmentsLimit
    messagesAtATime = sending.messagesAtATime
  }

  /// The last packets that were requested by ``interleaved(_:channel:)``.
  private var interleaved: (packets: Range<Int>, channel: UInt8, bytes: InterleavedBytes)?

  /// The objects made so far. An object without another holder is filled again, so that a picture costs no allocation.
  private var made: [InterleavedBytes] = []
  /// The most objects that are kept. Connections may hold some of them for a while.
  private static let madeLimit = 4

  /// Returns packets for a byte stream: one object for all callers that request the same packets.
  package func interleaved(_ packets: Range<Int>, channel: UInt8) -> InterleavedBytes {
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

  /// Returns an object that nobody else holds any more, or a new one.
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

  /// Notes another holder, which needs the frame until it calls ``removeHolder()``.
  package func addHolder() { holders += 1 }

  /// Notes that a holder needs the frame no longer. The last one gives it back.
  package func removeHolder() {
    precondition(holders > 0, "a holder leaves once")
    holders -= 1
    if holders == 0 { pool?.takeBack(self) }
  }

  /// Releases the picture and the interleaved packets, which are needed no longer.
  func clear() {
    picture = nil
    interleaved = nil
  }

  /// Takes the packets in ``batch``. All of them may leave at once unless `isPaced`. A key frame makes waiting frames
  /// useless unless `replacesWaiting` is `false`.
  package func fill(
    isFrame: Bool = true, isKeyFrame: Bool, replacesWaiting: Bool = true, isPaced: Bool, isFirstPart: Bool = true,
    isLastPart: Bool = true
  ) {
    self.isFrame = isFrame
    self.isKeyFrame = isKeyFrame
    self.replacesWaiting = isKeyFrame && replacesWaiting
    self.isFirstPart = isFirstPart
    self.isLastPart = isLastPart
    interleaved = nil
    messages.fill(from: batch, segments: min(isPaced ? Self.pacedSegments : Self.segments, segmentsLimit))
    released = 0
    release(isPaced ? 1 : count)
  }

  /// Releases the first `packets` packets, and those that the kernel takes in one message with them.
  package func release(_ packets: Int) {
    released = max(released, messages.boundary(from: min(packets, count)))
  }
}

/// The frames of one RTP stream, and who holds them. Used by the send thread alone.
///
/// A frame's holders are counted: the stream while it fills and sends the frame, its pacing, and each viewer on whose
/// way the frame is. These invariants hold between any two calls:
///
/// - A frame of the pool is free exactly while it has no holder. Then it holds no picture and no packets for others.
/// - A frame with holders holds its picture once for all of them, whatever their number. With its last holder the frame
///   gives the picture back to the queue, and is free.
/// - Only ``take(holding:)`` makes the first holder. A further one comes from a present one.
package final class OutgoingFramePool {
  private var free: [OutgoingFrame] = []
  private let pictures: CodedPictureQueue
  private let sending: PacketSending
  /// The number of frames made so far. One is made only while no other is free.
  package private(set) var count = 0

  /// Creates an empty pool.
  ///
  /// - Parameters:
  ///   - pictures: takes back a picture that no frame needs.
  ///   - sending: the limits of messages and calls.
  package init(pictures: CodedPictureQueue, _ sending: PacketSending = PacketSending()) {
    self.pictures = pictures
    self.sending = sending
  }

  /// The number of frames that have holders.
  package var held: Int { count - free.count }

  /// Returns a frame without packets for the payloads in `picture`, or for payloads of its own. The caller is its only
  /// holder.
  package func take(holding picture: CodedPicture? = nil) -> OutgoingFrame {
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
