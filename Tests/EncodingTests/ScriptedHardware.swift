#if X264
  import Glibc
  import Media
  import Synchronization
  import X264

  /// Hardware that does what a script says: x264 within, the stages without, so that what comes out is a real stream.
  final class ScriptedHardware: StagedVideoEncoder, @unchecked Sendable {
    // Sendable: used by one thread at a time; the script has a lock.

    /// What is to go wrong, and what happened.
    final class Script: Sendable {
      struct State {
        /// Pictures that fail, counted over all encoders of the script.
        var failing: Set<Int> = []
        /// The picture whose call does not come back before `release`.
        var hanging: Int?
        /// The picture whose frame is to be loaded twice.
        var refusingImport: Int?
        var loads = 0
        /// Whether opening fails.
        var refusesToOpen = false
        /// Whether the size is beyond what it can do.
        var hasLimit = false
        /// Whether `stop` does not come back before `releaseStop`.
        var hangsAtStop = false
        var isStopReleased = false
        /// Whether opening does not come back before `release`.
        var hangsAtOpening = false
        var isReleased = false
        var pictures = 0
        var opened = 0
        var stopped = 0
        var changes: [Int] = []
      }
      let state = Mutex(State())

      func releaseStop() {
        state.withLock { $0.isStopReleased = true }
      }

      func release() {
        state.withLock { $0.isReleased = true }
      }

      /// Sleeps, as a driver does, until somebody releases it.
      func hang() {
        while !state.withLock({ $0.isReleased }) { usleep(2000) }
      }
    }

    private let script: Script
    private let inner: X264Encoder
    private let pool: FramePool
    private var input: Frame?
    private var isMapped = false

    init(_ configuration: EncoderConfiguration, _ script: Script) throws(EncoderError) {
      let state = script.state.withLock { state in
        state.opened += 1
        return state
      }
      if state.hangsAtOpening { script.hang() }
      if state.hasLimit { throw .configuration("cannot encode \(configuration.size)") }
      if state.refusesToOpen {
        throw .call(library: "scripted", function: "open", code: 1, reason: "it was told to")
      }
      self.script = script
      inner = try X264Encoder(configuration)
      do {
        pool = try FramePool(size: configuration.size)
      } catch {
        throw .unavailable("\(error)")
      }
    }

    var configuration: EncoderConfiguration { inner.configuration }
    var name: String { "scripted hardware" }
    var parameterSets: ParameterSets { inner.parameterSets }

    func prepare() throws(EncoderError) { try inner.prepare() }

    func encode(
      _ frame: borrowing Frame, keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void
    ) throws(EncoderError) {
      try mapInput()
      try load(frame)
      try encodeLoaded(keyFrame: keyFrame, deliver: deliver)
    }

    func mapInput() throws(EncoderError) { isMapped = true }

    func load(_ frame: borrowing Frame) throws(EncoderError) {
      script.state.withLock { $0.loads += 1 }
      guard isMapped else { throw .output(library: "scripted", "loaded without a map") }
      guard let copy = pool.checkout(color: frame.color, timestamp: frame.timestamp, captured: frame.captured) else {
        throw .output(library: "scripted", "the input is still in use")
      }
      let (from, to) = (frame.planes, copy.planes)
      for row in 0..<from.size.height {
        (to.luma + row * to.lumaStride).update(from: from.luma + row * from.lumaStride, count: from.size.width)
      }
      for row in 0..<from.size.height / 2 {
        (to.chroma + row * to.chromaStride).update(
          from: from.chroma + row * from.chromaStride, count: from.size.width)
      }
      input = consume copy
    }

    func encodeLoaded(keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
      let (number, state) = script.state.withLock { state in
        defer { state.pictures += 1 }
        return (state.pictures, state)
      }
      if state.hanging == number { script.hang() }
      if state.refusingImport == number {
        input = nil
        throw .importRefused(library: "scripted")
      }
      if state.failing.contains(number) {
        throw .call(library: "scripted", function: "encode", code: 7, reason: "it was told to")
      }
      guard let frame = input.take() else { throw .output(library: "scripted", "nothing was loaded") }
      try inner.encode(frame, keyFrame: keyFrame, deliver: deliver)
    }

    func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
      script.state.withLock { $0.changes.append(bitrate) }
      try inner.change(bitrate: bitrate, frameRate: frameRate)
    }

    func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) { try inner.flush(deliver: deliver) }

    func stop() {
      inner.stop()
      while script.state.withLock({ $0.hangsAtStop && !$0.isStopReleased }) { usleep(2000) }
      script.state.withLock { $0.stopped += 1 }
    }
  }
#endif
