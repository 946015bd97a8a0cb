public import Media
import Synchronization

/// A sink for an encoder's output that owns what it gets, and passes it to any number of subscribers.
///
///     let pictures = EncodedPictureSink()
///     let stream = pictures.encodedPictures(.all)
///     try encoder.encode(frame, keyFrame: false, to: pictures)
///
/// The parts of a picture (``/Media/EncoderConfiguration/streamsSlices``) are put together, so each element is one access
/// unit, as a byte stream with start codes. Copying a picture allocates memory: the program `nightjar` uses a queue of its
/// own instead.
public final class EncodedPictureSink: AccessUnitSink, Sendable {
  private struct State {
    /// The parts so far of a picture that is not whole yet.
    var parts: EncodedPicture?
    /// The number of the next picture. Two sinks do not continue each other's sequence.
    var number = UInt64.random(in: 0 ... .max / 2)
  }

  /// The codec of the encoder's pictures.
  public let codec: VideoCodec
  private let broadcast = Broadcast<EncodedPicture>()
  private let state = Mutex(State())

  /// Creates a sink without subscribers for pictures of `codec`.
  public init(codec: VideoCodec = .h264) { self.codec = codec }

  /// Returns a stream of the pictures from now on, for one more subscriber.
  public func encodedPictures(_ buffering: Broadcast<EncodedPicture>.Buffering = .newest(3)) -> AsyncStream<
    EncodedPicture
  > {
    broadcast.stream(buffering)
  }

  /// The number of pictures that slow subscribers lost.
  public var dropped: UInt64 { broadcast.dropped }

  /// Copies `unit`, and sends it to the subscribers once it is whole. Without a subscriber it copies nothing.
  public func take(_ unit: borrowing AccessUnit) {
    let isFirst = unit.isFirstPart
    let isLast = unit.isLastPart
    guard broadcast.subscriberCount > 0 else {
      return state.withLock { state in
        state.parts = nil
        // Whoever subscribes later sees that pictures were lost.
        if isLast { state.number += 1 }
      }
    }
    let part = EncodedPicture(unit, codec: codec)
    let whole = state.withLock { state -> EncodedPicture? in
      defer { if isLast { (state.parts, state.number) = (nil, state.number + 1) } }
      guard isFirst || state.parts != nil else { return nil }
      let sum = isFirst ? part : state.parts.map { $0.followed(by: part) } ?? part
      state.parts = sum
      return isLast ? sum.numbered(state.number) : nil
    }
    if let whole { broadcast.send(whole) }
  }

  /// Ends the streams of all subscribers. Idempotent.
  public func finish() { broadcast.finish() }
}

extension EncodedPicture {
  /// Returns the same picture with a number.
  fileprivate func numbered(_ number: UInt64) -> EncodedPicture {
    EncodedPicture(
      annexB: annexB, codec: codec, timestamp: timestamp, captured: captured, isKeyFrame: isKeyFrame,
      isDamaged: isDamaged, number: number)
  }

  /// Returns the picture of both parts.
  fileprivate func followed(by next: EncodedPicture) -> EncodedPicture {
    EncodedPicture(
      annexB: annexB + next.annexB, codec: codec, timestamp: timestamp, captured: next.captured,
      isKeyFrame: isKeyFrame || next.isKeyFrame, isDamaged: isDamaged || next.isDamaged)
  }
}
