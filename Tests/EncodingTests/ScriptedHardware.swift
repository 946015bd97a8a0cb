#if X264
  import Glibc
  import Media
  import Platform
  import Synchronization
  import X264

  /// Hardware that does what a script says: x264 within, the stages without, so that what comes out is a real stream.
  final class ScriptedHardware: StagedVideoEncoder, @unchecked Sendable {
    // Sendable: used by one thread at a time; the script has a lock.

    /// The troubles to come, and the events so far.
    final class Script: Sendable {
      struct State {
        /// Pictures that fail, counted over all encoders of the script.
        var failing: Set<Int> = []
        /// The picture whose call does not come back before `release`.
        var hanging: Int?
        /// `true` if every picture's call hangs.
        var hangsAlways = false
        /// The picture whose frame is to be loaded twice.
        var refusingImport: Int?
        var loads = 0
        /// The orientations that it applies by itself, and the number of the picture that it fails to rotate.
        var turns: OrientationSet = []
        var failingTurn: Int?
        var turned = 0
        /// `true` if opening fails.
        var refusesToOpen = false
        /// `true` if the size is beyond its limits.
        var hasLimit = false
        /// `true` if `stop` does not come back before `releaseStop`.
        var hangsAtStop = false
        var isStopReleased = false
        /// `true` if opening does not come back before `release`.
        var hangsAtOpening = false
        var isReleased = false
        var pictures = 0
        var opened = 0
        var stopped = 0
        var changes: [Int] = []
        /// The number of quality levels, 0 for none; `true` if a running encoder refuses another one.
        var levels = 0
        var refusesLevels = false
        /// The levels with which encoders were opened, those that were requested of them, and that of each picture.
        var openedLevels: [Int?] = []
        var requestedLevels: [Int?] = []
        var pictureLevels: [Int?] = []
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
    private(set) var turns: OrientationSet
    private var isRotated = false
    private var level: Int?
    private var requested: Int?
    private var isFixed = false

    init(_ configuration: EncoderConfiguration, _ script: Script) throws(EncoderError) {
      let state = script.state.withLock { state in
        state.opened += 1
        state.openedLevels.append(configuration.vaapiQuality)
        return state
      }
      if state.hangsAtOpening { script.hang() }
      if state.hasLimit { throw .configuration("cannot encode \(configuration.size)") }
      if state.refusesToOpen {
        throw .call(library: "scripted", function: "open", code: 1, reason: "it was told to")
      }
      self.script = script
      (level, requested) = (configuration.vaapiQuality, configuration.vaapiQuality)
      turns = state.turns
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

    var qualityLevels: QualityLevels? {
      let count = script.state.withLock { $0.levels }
      return count > 1 ? QualityLevels(count: count, present: level, isFixed: isFixed) : nil
    }

    /// Unlike hardware, it makes no key frame.
    func change(vaapiQuality level: Int?) {
      script.state.withLock { $0.requestedLevels.append(level) }
      requested = level
    }

    func prepare() throws(EncoderError) { try inner.prepare() }

    func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      try mapInput()
      try load(frame)
      try encodeLoaded(keyFrame: keyFrame) { sink.take($0) }
    }

    func mapInput() throws(EncoderError) { isMapped = true }

    func load(_ frame: borrowing Frame) throws(EncoderError) {
      script.state.withLock { $0.loads += 1 }
      guard isMapped else { throw .output(library: "scripted", "loaded without a map") }
      guard frame.orientation == .upright || turns.contains(frame.orientation) else {
        throw .notTurned(frame.orientation, reason: "the script has it so")
      }
      guard let copy = pool.checkout(color: frame.color, timestamp: frame.timestamp, captured: frame.captured) else {
        throw .output(library: "scripted", "the input is still in use")
      }
      Self.copy(frame.planes, into: copy.planes, by: frame.orientation)
      isRotated = frame.orientation != .upright
      input = consume copy
    }

    func encodeLoaded(keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
      let (number, state) = script.state.withLock { state in
        defer { state.pictures += 1 }
        return (state.pictures, state)
      }
      if state.hanging == number || state.hangsAlways { script.hang() }
      if state.refusingImport == number {
        input = nil
        throw .importRefused(library: "scripted")
      }
      if isRotated, state.failingTurn == number {
        input = nil
        turns = []
        throw .notTurned(.upright, reason: "it was told to")
      }
      if isRotated { script.state.withLock { $0.turned += 1 } }
      if state.failing.contains(number) {
        throw .call(library: "scripted", function: "encode", code: 7, reason: "it was told to")
      }
      guard let frame = input.take() else { throw .output(library: "scripted", "nothing was loaded") }
      if requested != level, !isFixed {
        if state.refusesLevels { isFixed = true } else { level = requested }
      }
      script.state.withLock { $0.pictureLevels.append(level) }
      try inner.encode(frame, keyFrame: keyFrame, deliver: deliver)
    }

    /// Sample by sample, so that it is none of what it is compared with.
    private static func copy(_ from: NV12Planes, into to: NV12Planes, by orientation: Orientation) {
      for unit in [1, 2] {
        let (width, height) = (to.size.width / unit, to.size.height / unit)
        let (columns, rows) = (from.size.width / unit, from.size.height / unit)
        let source = unit == 1 ? (from.luma, from.lumaStride) : (from.chroma, from.chromaStride)
        let target = unit == 1 ? (to.luma, to.lumaStride) : (to.chroma, to.chromaStride)
        for y in 0..<height {
          for x in 0..<width {
            let turned = orientation.isMirrored ? width - 1 - x : x
            let (column, row) =
              switch orientation.rotation {
              case .none: (turned, y)
              case .quarter: (y, rows - 1 - turned)
              case .half: (columns - 1 - turned, rows - 1 - y)
              case .threeQuarters: (columns - 1 - y, turned)
              }
            for byte in 0..<unit {
              target.0[y * target.1 + x * unit + byte] = source.0[row * source.1 + column * unit + byte]
            }
          }
        }
      }
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
