public import Adaptors
import Platform
import Synchronization

/// A receiver of one stream, H.264 with Opus beside it: from an RTSP server (TCP, UDP, multicast, TLS, SRTP), or by a session
/// description.
///
///     let receiver = try StreamReceiver(.rtsp(StreamURL("rtsp://192.0.2.7/camera")))
///     let pictures = receiver.accessUnits(.newest(64))
///     try receiver.start()
///     for await picture in pictures { … }
///
/// It reorders packets, requests lost ones, marks pictures of which a part is missing, and asks for a key frame after a loss. It
/// connects again when the stream is lost. A thread of its own does all this; it ends with ``stop()``, and with the receiver.
///
/// The server counts as hostile: all its messages have limits, it is never followed to another address, and passwords are sent
/// as Digest only.
public final class StreamReceiver: Sendable {
  private enum Stage { case created, started, stopped }

  private let worker: ReceiverWorker
  private let stage = Mutex(Stage.created)

  /// Creates a receiver, which connects with ``start()``: whoever subscribes before misses nothing.
  ///
  /// - Throws: ``ReceiverError/configuration(_:)``; ``ReceiverError/connection(_:)`` where the system has no descriptor left.
  public init(_ source: Source, configuration: Configuration = Configuration()) throws(ReceiverError) {
    try configuration.check()
    do throws(SystemFailure) {
      worker = try ReceiverWorker(source, configuration)
    } catch {
      throw .connection("\(error)")
    }
  }

  deinit { stop() }

  /// Connects. Only the first call does anything.
  ///
  /// - Throws: ``ReceiverError/connection(_:)`` where the system has no thread left.
  public func start() throws(ReceiverError) {
    do throws(SystemFailure) {
      try stage.withLock { stage throws(SystemFailure) in
        guard stage == .created else { return }
        // The thread holds the worker, and ends when it is stopped. Nobody waits for a name server.
        try NamedThread("nj-receive") { [worker] in worker.run() }.detach()
        stage = .started
      }
    } catch {
      throw .connection("\(error)")
    }
  }

  /// Returns a stream of the access units from now on, for one more subscriber. Damaged ones are marked
  /// (``/Adaptors/EncodedPicture/isDamaged``). It ends when the receiver does.
  public func accessUnits(_ buffering: Broadcast<EncodedPicture>.Buffering = .newest(64)) -> AsyncStream<
    EncodedPicture
  > {
    worker.pictures.stream(buffering)
  }

  /// Returns a stream of the packets of sound from now on, for one more subscriber. It ends when the receiver does. Where there is
  /// no sound, nothing comes.
  public func soundPackets(_ buffering: Broadcast<EncodedSound>.Buffering = .newest(64)) -> AsyncStream<EncodedSound> {
    worker.sounds.stream(buffering)
  }

  /// Returns a stream of the changes of state from now on, for one more subscriber. It ends when the receiver does.
  public func events() -> AsyncStream<Event> { worker.events.stream(.newest(64)) }

  /// The figures so far.
  public var statistics: Statistics { worker.published.withLock { $0 } }

  /// The number of access units that slow subscribers lost.
  public var dropped: UInt64 { worker.pictures.dropped }

  /// The number of packets of sound that slow subscribers lost.
  public var soundDropped: UInt64 { worker.sounds.dropped }

  /// Asks the sender for a key frame, for a decoder that cannot go on.
  public func requestKeyFrame() { worker.keyFrameRequest.fire() }

  /// Ends the reception: the server and the subscribers are told. Idempotent; it does not wait.
  public func stop() {
    worker.stop.fire()
    stage.withLock { stage in
      // Without a thread, nobody else tells the subscribers.
      if stage == .created { worker.end(.stopped) }
      stage = .stopped
    }
  }
}
