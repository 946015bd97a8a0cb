// What encoders cost around the encoding itself: the first frame with and without preparation, the hand-over to a
// driver's thread and back, the standby's memory, a rotation of the picture, allocations. `Benchmarks/encoders` runs it.
//
//   encoder-cost ROUNDS RENDER-NODE
#if X264
  import Encoding
  import Glibc
  import Media
  import Platform
  import VAAPI
  import X264

  /// The preloaded counter's `long nightjar_allocations(void)`.
  typealias Counter = @convention(c) () -> CLong
  let counter = dlsym(nil, "nightjar_allocations").map { unsafeBitCast($0, to: Counter.self) }

  func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

  /// Resident memory of this process in bytes.
  func residentMemory() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, CInt(line.count), file) != nil else { return 0 }
    let fields = line.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }.split(separator: UInt8(ascii: " "))
      .map { String(decoding: $0, as: UTF8.self) }
    return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * sysconf(CInt(_SC_PAGESIZE))
  }

  /// Frames whose picture moves and has detail. It is drawn once, and a frame shows a window on it.
  final class Scene {
    private let pool: FramePool
    private let size: PictureSize
    private let stride: Int
    private var picture: [UInt8]
    private var index = 0

    init(_ size: PictureSize) throws {
      self.size = size
      pool = try FramePool(size: size)
      stride = size.width + 512
      picture = [UInt8](repeating: 0, count: stride * size.height)
      var seed: UInt32 = 1
      for position in picture.indices {
        seed = seed &* 1_664_525 &+ 1_013_904_223
        picture[position] = UInt8(16 + (position % stride / 3 + position / stride / 2) % 200 + Int(seed >> 29))
      }
    }

    /// The next frame, and the time that `body` took for it in milliseconds.
    func time(_ body: (borrowing Frame) throws -> Void) throws -> Double {
      let time = Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index))
      guard let frame = pool.checkout(color: .bt709, timestamp: time, captured: time) else { fatalError("no frame") }
      let planes = frame.planes
      let shift = index * 4 % 512
      index += 1
      for y in 0..<size.height {
        picture.withUnsafeBufferPointer { source in
          guard let base = source.baseAddress else { return }
          (planes.luma + y * planes.lumaStride).update(from: base + y * stride + shift, count: size.width)
        }
      }
      for y in 0..<size.height / 2 {
        (planes.chroma + y * planes.chromaStride).update(repeating: 128, count: size.width)
      }
      let start = Instant.now()
      try body(frame)
      return (Instant.now() - start).milliseconds
    }
  }

  /// The times and counts of one encoder.
  struct Course {
    var opening = 0.0
    var preparation = 0.0
    var first = 0.0
    var keyFrame = 0.0
    var steady = 0.0
    var allocations = 0
  }

  /// A fresh encoder over 90 frames, the first and the sixtieth of them key frames.
  func course(_ scene: Scene, prepares: Bool, _ make: () throws -> any VideoEncoder) throws -> Course {
    var result = Course()
    var start = Instant.now()
    let encoder = try make()
    result.opening = (Instant.now() - start).milliseconds
    start = .now()
    if prepares { try encoder.prepare() }
    result.preparation = (Instant.now() - start).milliseconds
    var steady = [Double](repeating: 0, count: 59)
    var before = 0
    for index in 0..<90 {
      if index == 61 { before = counter?() ?? 0 }
      let time = try scene.time { frame in
        try encoder.encode(frame, keyFrame: index == 0 || index == 60) { unit in precondition(!unit.nalUnits.isEmpty) }
      }
      switch index {
      case 0: result.first = time
      case 60: result.keyFrame = time
      case 1..<60: steady[index - 1] = time
      default: break
      }
    }
    result.allocations = (counter?() ?? 0) - before
    result.steady = median(steady)
    encoder.stop()
    return result
  }

  func format(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    let rest = hundredths % 100
    return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
  }

  /// One row: medians over the rounds, in turns.
  func row(_ name: String, _ size: PictureSize, rounds: Int, _ make: () throws -> any VideoEncoder) throws {
    let scene = try Scene(size)
    var cold: [Course] = []
    var warm: [Course] = []
    for _ in 0..<rounds {
      cold.append(try course(scene, prepares: false, make))
      warm.append(try course(scene, prepares: true, make))
    }
    func figure(_ courses: [Course], _ key: KeyPath<Course, Double>) -> Double {
      median(courses.map { $0[keyPath: key] })
    }
    let steady = figure(warm, \.steady)
    let fields = [
      name, "\(size)", format(figure(cold, \.first) / figure(cold, \.steady)), format(figure(warm, \.first) / steady),
      format(figure(warm, \.keyFrame) / steady), format(steady),
      format(figure(warm, \.opening) + figure(warm, \.preparation)), "\(warm.map(\.allocations).max() ?? 0)",
    ]
    print("first," + fields.joined(separator: ","))
  }

  func run() throws {
    guard CommandLine.arguments.count == 3, let rounds = Int(CommandLine.arguments[1]), rounds > 0 else {
      print("usage: encoder-cost ROUNDS RENDER-NODE")
      exit(EX_USAGE)
    }
    let node = CommandLine.arguments[2]
    let sizes = [PictureSize(width: 1280, height: 720), PictureSize(width: 1920, height: 1080)]
    func configuration(_ preset: EncoderPreset, _ size: PictureSize) -> EncoderConfiguration {
      var settings = preset.settings
      // With lookahead the first frames give nothing: there is no first picture to time.
      settings.lookahead = 0
      return settings.configuration(size: size, frameRate: .thirty, color: .bt709, processors: 1)
    }
    // First of all, while nothing that was freed can be used again.
    let live = configuration(.liveCapture, sizes[0])
    let memory = residentMemory()
    let standby = try X264Encoder(live)
    try standby.prepare()
    print("standby,\(residentMemory() - memory)")
    standby.stop()
    for preset in EncoderPreset.allCases {
      for size in sizes {
        let configuration = configuration(preset, size)
        try row("x264 \(preset.rawValue)", size, rounds: rounds) { try X264Encoder(configuration) }
      }
    }
    for size in sizes {
      let configuration = configuration(.liveCapture, size)
      try row("VA-API live-capture", size, rounds: rounds) {
        try VAAPIEncoder(configuration, node: node)
      }
    }

    try measureHandOver(live, frames: rounds * 100)
    for choice in [EncoderChoice.x264, .vaapi] { try measureTurns(choice, live, node: node, turns: rounds * 40) }
  }

  /// Hardware that encodes nothing: what is left is the hand-over.
  final class NoHardware: StagedVideoEncoder, @unchecked Sendable {
    // Sendable: used by one thread at a time; the bytes never change.
    let configuration: EncoderConfiguration
    let name = "none"
    let parameterSets: ParameterSets
    private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
    private let units = UnsafeMutableBufferPointer<NALUnit>.allocate(capacity: 1)
    private var time = Instant.zero

    init(_ configuration: EncoderConfiguration) throws(EncoderError) {
      self.configuration = configuration
      bytes.copyBytes(from: [0x65, 1])
      guard let sets = ParameterSets(sequence: [0x67, 66, 0xc0, 30, 1], picture: [0x68, 1]),
        let unit = NALUnit(UnsafeRawBufferPointer(bytes))
      else { throw .stopped }
      parameterSets = sets
      units.initializeElement(at: 0, to: unit)
    }

    deinit {
      bytes.deallocate()
      units.deallocate()
    }

    func prepare() throws(EncoderError) {}
    func mapInput() throws(EncoderError) {}
    func load(_ frame: borrowing Frame) throws(EncoderError) { time = frame.timestamp }
    func encodeLoaded(keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
      let unit = AccessUnit(nalUnits: UnsafeBufferPointer(units), isKeyFrame: true, timestamp: time, captured: time)
      deliver(unit)
    }
    func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      try load(frame)
      try encodeLoaded(keyFrame: keyFrame) { sink.take($0) }
    }
    func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {}
    func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {}
    func stop() {}
  }

  /// The cost of the way through a driver's thread and back, with 5 ms of idle time before each frame.
  func measureHandOver(_ configuration: EncoderConfiguration, frames: Int) throws {
    var policy = EncoderLineup.Policy()
    policy.hangLimit = 100
    policy.keepsStandby = false
    let encoder = try EncoderLineup(
      configuration, library: "none", policy: policy,
      software: { configuration throws(EncoderError) in try X264Encoder(configuration) }
    ) { configuration throws(EncoderError) in try NoHardware(configuration) }
    try encoder.prepare()
    let scene = try Scene(configuration.size)
    var wall = [Double](repeating: 0, count: frames)
    var processor = [Double](repeating: 0, count: frames)
    var allocations = 0
    for index in 0..<frames {
      usleep(5000)
      let before = counter?() ?? 0
      wall[index] = try scene.time { frame in
        let start = processorTime()
        try encoder.encode(frame, keyFrame: false) { _ in }
        processor[index] = processorTime() - start
      }
      if index >= 10 { allocations += (counter?() ?? 0) - before }
    }
    encoder.stop()
    print("hand-over,\(format(median(wall) * 1000)),\(format(median(processor) * 1000)),\(allocations)")
  }

  /// The processor time of all threads so far, in milliseconds.
  func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
  }

  /// The floor of the hand-over: one thread wakes another that sleeps, which wakes the first, after some idle time.
  final class PingPong: @unchecked Sendable {
    // Sendable: the count is touched under the monitor alone.
    private let monitor = Monitor()
    private var count = 0

    /// Waits until the count has the given parity, and counts on; false at the end.
    func step(_ parity: Int, until end: Int) -> Bool {
      monitor.locked {
        while count < end, count % 2 != parity { monitor.wait() }
        guard count < end else { return false }
        count += 1
        monitor.signal()
        return true
      }
    }

    /// Waits until the other side has answered.
    func awaitAnswer() {
      monitor.locked { while count % 2 != 0 { monitor.wait() } }
    }

    /// Microseconds of a round trip, the median of `rounds`.
    static func measure(rounds: Int) throws -> Double {
      let game = PingPong()
      let partner = try NamedThread("partner") { while game.step(1, until: rounds * 2) {} }
      var times: [Double] = []
      for _ in 0..<rounds {
        usleep(5000)
        let start = Instant.now()
        _ = game.step(0, until: rounds * 2)
        game.awaitAnswer()
        times.append((Instant.now() - start).milliseconds * 1000)
      }
      _ = consume partner
      return median(times)
    }
  }

  do {
    try run()
    print("floor,\(format(try PingPong.measure(rounds: 200)))")
  } catch {
    print("encoder-cost: \(error)")
    exit(EX_SOFTWARE)
  }
#else
  import Glibc

  print("encoder-cost: this build has no x264 to measure")
  exit(EX_UNAVAILABLE)
#endif
