import Glibc
package import Platform
package import Sound
import Synchronization

/// Encodes the stream's sound as MP3 for listeners, on a thread of its own. The thread exists only while there is a
/// listener, or was one a moment ago. Each frame is encoded once for all listeners.
///
/// The sound's thread offers every frame of samples. While nobody listens, that costs one load; else a copy under a
/// lock that no other thread holds for longer than such a copy.
package final class MP3Stage: LiveStage, @unchecked Sendable {
  // Sendable: everything is constant or under the mutex.

  /// The most listeners at a time.
  package static let listenerLimit = 16
  /// The most MP3 frames that wait for a listener: about a second. A player never catches up, so a frame that waited
  /// delays all later ones.
  package static let waitingLimit = 42
  /// The time for which memory and thread are kept for the next listener.
  private static let rest = Duration(seconds: 10)
  /// The longest wait for samples. Deadlines are checked this often, at least. Samples come every 20 ms.
  private static let patience = Duration(seconds: 0.25)

  private let rest: Duration
  private let makeEncoder: @Sendable () throws(MP3Failure) -> EncoderBox
  private let ring: SampleRing
  private let audience = Mutex(Audience())

  private struct Audience {
    var places: [UInt64: Place] = [:]
    var lastNumber: UInt64 = 0
    var encoded = 0
    /// The generation of listeners: counts up when a listener comes after a pause. Frames of an older generation reach
    /// nobody.
    var generation = 0
    var isRunning = false
    var isClosed = false
    /// The time at which the last listener left.
    var deserted = Instant.zero
  }

  /// A listener, with the frames that wait for it, or its own wait for a frame.
  private struct Place {
    var figures: LiveViewerStatistics
    var frames: [[UInt8]] = []
    var waiting: Waiting?

    /// Returns the frames that wait, at once; nil where there are none.
    mutating func take() -> MP3Frames? {
      guard !frames.isEmpty else { return nil }
      defer { frames.removeAll(keepingCapacity: true) }
      return MP3Frames(bytes: frames.count == 1 ? frames[0] : Array(frames.joined()), frames: frames.count)
    }

    /// Queues a frame for the listener. A full queue drops its oldest frame.
    mutating func keep(_ frame: [UInt8]) {
      if frames.count == MP3Stage.waitingLimit {
        frames.removeFirst()
        figures.lost += 1
      }
      frames.append(frame)
    }
  }

  /// A listener's wait for a frame.
  private struct Waiting {
    let deadline: Instant
    let continuation: CheckedContinuation<MP3Frames, any Error>
  }

  /// Creates a stage for sound of `channels`, 1 or 2.
  package init(
    channels: Int, rest: Duration = MP3Stage.rest,
    makeEncoder: @escaping @Sendable (_ channels: Int) throws(MP3Failure) -> EncoderBox = {
      (channels) throws(MP3Failure) in EncoderBox(try MP3Encoder(channels: channels))
    }
  ) {
    self.rest = rest
    self.makeEncoder = { () throws(MP3Failure) in try makeEncoder(channels) }
    ring = SampleRing(frameSamples: OpusEncoder.frameSamples * channels)
  }

  // MARK: The sound thread's side

  /// `true` if somebody listens.
  package var isWanted: Bool { ring.isWanted }

  /// Takes a copy of 20 ms of each channel if somebody listens. Never waits for the encoder. For the sound's thread.
  package func offer(_ frame: UnsafeBufferPointer<Int16>) { ring.put(frame) }

  // MARK: The listeners' side

  /// Admits a listener, who begins with the next frame that is encoded: the last seconds would only add to the delay.
  ///
  /// - Throws: ``LiveViewerError``, `SystemFailure` where the system has no thread left.
  package func admit(_ name: String, peer: ViewerPeer? = nil) throws -> UInt64 {
    try audience.withLock { audience in
      guard !audience.isClosed else { throw LiveViewerError.ended }
      guard audience.places.count < Self.listenerLimit else {
        throw LiveViewerError.tooMany(.sound, limit: Self.listenerLimit)
      }
      let isFirst = audience.places.isEmpty
      if !audience.isRunning {
        try NamedThread("nj-listen") { [self] in run() }.detach()
        audience.isRunning = true
      }
      if isFirst {
        audience.generation += 1
        ring.open(generation: audience.generation)
      }
      audience.lastNumber += 1
      let figures = LiveViewerStatistics(id: audience.lastNumber, name: name, peer: peer)
      audience.places[figures.id] = Place(figures: figures)
      return figures.id
    }
  }

  /// Removes a listener.
  package func dismiss(_ listener: UInt64) {
    let waiting: Waiting? = audience.withLock { audience in
      guard let place = audience.places.removeValue(forKey: listener) else { return nil }
      if audience.places.isEmpty {
        ring.pause()
        audience.deserted = .now()
      }
      return place.waiting
    }
    waiting?.continuation.resume(throwing: LiveViewerError.ended)
  }

  /// Returns the frames that wait for the listener, or the next one.
  ///
  /// - Throws: ``LiveViewerError``, `MP3Failure`.
  package func next(for listener: UInt64, until deadline: Instant) async throws -> MP3Frames {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let answer: Result<MP3Frames, any Error>? = audience.withLock { audience in
          guard !audience.isClosed, !Task.isCancelled, audience.places[listener] != nil else {
            return .failure(LiveViewerError.ended)
          }
          if let sound = audience.places[listener]?.take() { return .success(sound) }
          audience.places[listener]?.waiting = Waiting(deadline: deadline, continuation: continuation)
          return nil
        }
        if let answer { continuation.resume(with: answer) }
      }
    } onCancel: {
      end(takeOut { id, _ in id == listener }, LiveViewerError.ended)
    }
  }

  /// Notes what was sent to a listener.
  package func noteSent(_ frames: Int, bytes: Int, to listener: UInt64) {
    audience.withLock { $0.places[listener]?.figures.noteSent(frames, bytes: bytes) }
  }

  /// The statistics so far, with the present listeners.
  package var statistics: MP3Statistics {
    var statistics = MP3Statistics()
    statistics.skipped = ring.droppedFrames
    audience.withLock {
      statistics.encoded = $0.encoded
      statistics.listeners = $0.places.values.map(\.figures).sorted { $0.id < $1.id }
    }
    return statistics
  }

  /// `true` while the thread exists.
  package var isRunning: Bool { audience.withLock { $0.isRunning } }

  /// Ends the thread and every wait. May be called repeatedly.
  package func close() {
    audience.withLock {
      $0.isClosed = true
      ring.close()
    }
    end(takeOut { _, _ in true }, LiveViewerError.ended)
  }

  /// Removes the waits that `isMeant` selects, and returns them. The caller answers them once the lock is free: to
  /// resume a task takes the lock of its state, which the thread that cancels the task may hold.
  private func takeOut(_ isMeant: (UInt64, Waiting) -> Bool) -> [Waiting] {
    audience.withLock { audience in
      var meant: [Waiting] = []
      for (id, place) in audience.places {
        guard let waiting = place.waiting, isMeant(id, waiting) else { continue }
        meant.append(waiting)
        audience.places[id]?.waiting = nil
      }
      return meant
    }
  }

  private func end(_ waits: [Waiting], _ error: any Error) {
    for waiting in waits { waiting.continuation.resume(throwing: error) }
  }

  // MARK: The thread

  /// An encoder, where a value that can be copied is needed.
  package final class EncoderBox {
    var encoder: MP3Encoder
    package init(_ encoder: consuming MP3Encoder) { self.encoder = encoder }
  }

  private func run() {
    // On Linux, for this thread alone: RTP viewers have precedence over MP3. If the call fails, the thread keeps its
    // priority.
    _ = setpriority(CInt(PRIO_PROCESS.rawValue), 0, 5)
    let samples = UnsafeMutableBufferPointer<Int16>.allocate(capacity: ring.frameSamples)
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: MP3Encoder.byteLimit, alignment: 8)
    defer {
      samples.deallocate()
      memory.deallocate()
    }
    var (box, generation): (EncoderBox?, Int) = (nil, 0)
    while goesOn(at: .now()) {
      guard case .frame(let present) = ring.take(samples, until: .now() + Self.patience) else { continue }
      // An encoder keeps the end of its last sound. A new generation of listeners must not hear it, so it gets a new
      // encoder. A mute needs none: its listeners heard that sound.
      do throws(MP3Failure) {
        if box == nil || present != generation { (box, generation) = (try makeEncoder(), present) }
        // Of its first samples LAME makes no frame yet.
        guard let count = try box?.encoder.encode(UnsafeBufferPointer(samples), into: memory), count > 0 else {
          continue
        }
        deliver(Array(memory[..<count]), of: generation)
      } catch {
        return fail(error)
      }
    }
  }

  /// Ends waits that have lasted too long. Returns `false` if the thread is to end.
  private func goesOn(at now: Instant) -> Bool {
    end(takeOut { $1.deadline <= now }, LiveViewerError.late(.sound))
    return audience.withLock { audience in
      guard audience.isClosed || audience.places.isEmpty && now >= audience.deserted + rest else { return true }
      audience.isRunning = false
      ring.close()
      return false
    }
  }

  /// Delivers a frame to the listeners; to none if all of them have left meanwhile, and others have come.
  private func deliver(_ frame: [UInt8], of generation: Int) {
    let answered: [Waiting] = audience.withLock { audience in
      guard audience.generation == generation else { return [] }
      audience.encoded += 1
      var answered: [Waiting] = []
      for id in audience.places.keys {
        if let waiting = audience.places[id]?.waiting {
          audience.places[id]?.waiting = nil
          answered.append(waiting)
        } else {
          audience.places[id]?.keep(frame)
        }
      }
      return answered
    }
    let sound = MP3Frames(bytes: frame, frames: 1)
    for waiting in answered { waiting.continuation.resume(returning: sound) }
  }

  /// Ends the thread, and every listener: the next one starts another thread.
  private func fail(_ error: MP3Failure) {
    let waits = audience.withLock { audience in
      let waits = audience.places.values.compactMap(\.waiting)
      audience.places.removeAll()
      audience.isRunning = false
      ring.close()
      return waits
    }
    end(waits, error)
  }
}
