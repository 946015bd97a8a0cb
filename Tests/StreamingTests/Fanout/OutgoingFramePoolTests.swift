import Media
import Platform
import Streaming
import Testing

/// The holders of frames and pictures, and the times at which these come back.
@Suite struct OutgoingFramePoolTests {
  /// A picture that was taken, with the taker as its only holder.
  private static func picture(of queue: CodedPictureQueue, at time: Int64 = 0) throws -> CodedPicture {
    let picture = try #require(queue.beginWrite())
    try #require(picture.store([[0x65, 1, 2]], isKeyFrame: true, at: Instant.zero + .milliseconds(time)))
    queue.commit(picture, encoded: .now())
    guard case .picture(let taken) = queue.take() else { throw MissingPicture() }
    return taken
  }

  private struct MissingPicture: Error {}

  @Test func `a frame holds its picture once, and gives it back with its last holder`() throws {
    let queue = try CodedPictureQueue(capacity: 4096)
    let pool = OutgoingFramePool(pictures: queue)
    let picture = try Self.picture(of: queue)
    #expect(picture.holders == 1)
    let frame = pool.take(holding: picture)
    #expect(frame.holders == 1 && picture.holders == 2 && pool.held == 1)
    // Two viewers.
    frame.addHolder()
    frame.addHolder()
    #expect(frame.holders == 3 && picture.holders == 2)
    queue.release(picture)
    frame.removeHolder()
    frame.removeHolder()
    #expect(frame.picture === picture && pool.held == 1)
    frame.removeHolder()
    #expect(frame.picture == nil && picture.holders == 0 && pool.held == 0)
    #expect(queue.oldestTaken(beyond: 0) == nil)
  }

  @Test func `a frame that came back is used again, and none is while it has a holder`() throws {
    let queue = try CodedPictureQueue(capacity: 4096, held: 8)
    let pool = OutgoingFramePool(pictures: queue)
    let first = pool.take(holding: try Self.picture(of: queue))
    let second = pool.take(holding: try Self.picture(of: queue, at: 33))
    #expect(first !== second && pool.count == 2)
    first.removeHolder()
    let third = pool.take(holding: try Self.picture(of: queue, at: 66))
    #expect(third === first && pool.count == 2 && pool.held == 2)
    second.removeHolder()
    third.removeHolder()
    #expect(pool.count == 2 && pool.held == 0)
  }

  @Test func `frames of several streams share a picture, which is the oldest until all gave it back`() throws {
    let queue = try CodedPictureQueue(capacity: 4096, held: 8)
    let pools = [OutgoingFramePool(pictures: queue), OutgoingFramePool(pictures: queue)]
    let old = try Self.picture(of: queue)
    let frames = pools.map { $0.take(holding: old) }
    queue.release(old)
    let new = try Self.picture(of: queue, at: 33)
    #expect(queue.oldestTaken(beyond: 1) === old && queue.oldestTaken(beyond: 2) == nil)
    frames[0].removeHolder()
    #expect(old.holders == 1 && queue.oldestTaken(beyond: 1) === old)
    frames[1].removeHolder()
    #expect(old.holders == 0 && queue.oldestTaken(beyond: 0) === new)
    queue.release(new)
    #expect(queue.oldestTaken(beyond: 0) == nil)
  }
}
