#if X264
  import Foundation
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  /// Frames that hardware rotates by itself, until it does not.
  @Suite struct FrameRotatorTests {
    private static let wide = TurningStream.landscape
    private static let tall = TurningStream.portrait
    private static let everything = OrientationSet(rawValue: .max)
    private static let configuration = EncoderConfiguration(
      size: wide, frameRate: .thirty, bitrate: 4_000_000, color: .bt709)
    private static let quarter = Orientation(.quarter)

    /// The trouble that hardware has with rotated frames.
    enum Trouble: CaseIterable {
      case none, turning, encoding, hanging, never
    }

    private static func script(_ trouble: Trouble) -> ScriptedHardware.Script {
      let script = ScriptedHardware.Script()
      script.state.withLock { state in
        if trouble != .never { state.turns = everything }
        if trouble == .turning { state.failingTurn = 4 }
        if trouble == .encoding { state.failing = [4] }
        if trouble == .hanging { state.hanging = 4 }
      }
      return script
    }

    private static func select(
      _ configuration: EncoderConfiguration, _ aspects: EncoderAspects, _ choice: EncoderChoice = .auto,
      _ script: @escaping @Sendable (PictureSize) -> ScriptedHardware.Script
    ) throws -> EncoderSelection {
      var policy = EncoderLineup.Policy()
      // A machine that is held up is no hang.
      policy.hangLimit = 100
      policy.openingLimit = Duration(seconds: 60)
      let candidate = EncoderSelector.HardwareCandidate(library: "scripted") { asked throws(EncoderError) in
        var own = asked
        own.profile = .main
        own.x264Preset = "superfast"
        return try ScriptedHardware(own, script(asked.size))
      }
      return try EncoderSelector.select(
        choice, configuration, hardware: [candidate], policy: policy, aspects: aspects, turns: true,
        software: { configuration throws(EncoderError) in try X264Encoder(configuration) })
    }

    /// A picture of which no two corners are alike.
    private static func draw(_ planes: NV12Planes, _ number: Int) {
      for y in 0..<planes.size.height {
        for x in 0..<planes.size.width {
          planes.luma[y * planes.lumaStride + x] = UInt8(30 + x / 2 + y / 8 + number % 10)
        }
      }
      for y in 0..<planes.size.height / 2 {
        for x in 0..<planes.size.width / 2 {
          planes.chroma[y * planes.chromaStride + 2 * x] = UInt8(60 + x / 2)
          planes.chroma[y * planes.chromaStride + 2 * x + 1] = UInt8(80 + y)
        }
      }
    }

    private static func bytes(_ planes: NV12Planes) -> Data {
      var data = Data()
      for row in 0..<planes.size.height {
        data.append(planes.luma + row * planes.lumaStride, count: planes.size.width)
      }
      for row in 0..<planes.size.height / 2 {
        data.append(planes.chroma + row * planes.chromaStride, count: planes.size.width)
      }
      return data
    }

    @Test(arguments: Trouble.allCases)
    func `every frame is rotated, by the hardware or by software`(trouble: Trouble) throws {
      var configuration = Self.configuration
      configuration.size = Self.tall
      let script = Self.script(trouble)
      defer { script.release() }
      let selection = try Self.select(configuration, .one) { _ in script }
      let (encoder, offer) = (selection.encoder, try #require(selection.turning))
      #expect(offer.covers(Self.quarter, for: Self.tall) == (trouble != .never))
      #expect(!offer.covers(Self.quarter, for: Self.wide))
      let pool = try FramePool(size: Self.wide)
      var stream = CodedStream()
      var source = Data()
      for number in 0..<10 {
        var frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(number)))
        Self.draw(frame.planes, number)
        frame.orientation = Self.quarter
        source.append(Self.bytes(frame.planes))
        var delivered = stream
        try encoder.encode(frame, keyFrame: false) { delivered.append($0) }
        stream = delivered
      }
      #expect(offer.covers(Self.quarter, for: Self.tall) == (trouble == .none))
      let counters = encoder.counters
      let events = try #require(selection.events).take().map(\.description)
      encoder.stop()
      #expect(!offer.covers(Self.quarter, for: Self.tall))
      #expect(stream.timestamps == (0..<10).map { Instant.zero + FrameRate.thirty.time(ofFrame: Int64($0)) })
      #expect(try stream.decodedCount() == 10)
      #expect(try stream.decodedSizes() == Array(repeating: Self.tall, count: 10))
      #expect(try stream.quality(against: source, of: Self.wide, filter: "transpose=clock") > 35)
      let turned = script.state.withLock { $0.turned }
      switch trouble {
      case .none: #expect((turned, counters.failovers, events.count) == (10, 0, 0))
      case .never: #expect((turned, counters.failovers, events.count) == (0, 0, 0))
      case .turning:
        // The encoder goes on, without so much as a key frame.
        #expect((turned, counters.failovers, stream.keyFrames) == (4, 0, [0]))
        #expect(events == ["the CPU rotates pictures from now on: the script has it so"])
      case .encoding: #expect((counters.failovers, counters.hangs, stream.keyFrames) == (1, 0, [0, 4]))
      case .hanging: #expect((counters.failovers, counters.hangs, stream.keyFrames) == (1, 1, [0, 4]))
      }
    }

    @Test(arguments: [Trouble.none, .turning, .encoding, .hanging, .never])
    func `rotations between any two frames lose no frame`(trouble: Trouble) throws {
      let scripts = (wide: Self.script(.none), tall: Self.script(trouble))
      defer { scripts.tall.release() }
      let selection = try Self.select(Self.configuration, .both) { $0 == Self.wide ? scripts.wide : scripts.tall }
      let encoder = try #require(selection.encoder as? EncoderLineup)
      #expect(eventually { encoder.isStandbyReady })
      let pool = try FramePool(size: Self.wide)
      var stream = CodedStream()
      var sizes: [PictureSize] = []
      let order = (Orientation.all + Orientation.all.reversed()).flatMap { [$0, $0, $0] }
      for (number, orientation) in order.enumerated() {
        var frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(number)))
        Self.draw(frame.planes, number)
        frame.orientation = orientation
        sizes.append(frame.rotatedSize)
        var delivered = stream
        try encoder.encode(frame, keyFrame: false) { delivered.append($0) }
        stream = delivered
      }
      let turns = order.indices.dropFirst().filter { sizes[$0] != sizes[$0 - 1] }
      let counters = encoder.counters
      encoder.stop()
      #expect(counters.switches == turns.count)
      // A half rotation or a mirror needs none.
      #expect(Set(turns).isSubset(of: stream.keyFrames))
      #expect(stream.keyFrames.count <= turns.count + 2)
      #expect(stream.timestamps == order.indices.map { Instant.zero + FrameRate.thirty.time(ofFrame: Int64($0)) })
      #expect(try stream.decodedSizes() == sizes)
      #expect(try stream.decodedCount() == order.count)
    }

    @Test(arguments: 1...4)
    func `hardware that fails right after a key frame is followed by another idr_pic_id`(failing: Int) throws {
      var configuration = Self.configuration
      configuration.size = Self.tall
      let script = Self.script(.none)
      script.state.withLock { $0.failing = [failing] }
      let encoder = try Self.select(configuration, .one) { _ in script }.encoder
      let pool = try FramePool(size: Self.wide)
      var stream = CodedStream()
      for number in 0..<6 {
        var frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(number)))
        Self.draw(frame.planes, number)
        frame.orientation = Self.quarter
        var delivered = stream
        try encoder.encode(frame, keyFrame: true) { delivered.append($0) }
        stream = delivered
      }
      #expect(encoder.counters.failovers == 1)
      encoder.stop()
      #expect(stream.keyFrames == Array(0..<6))
      #expect(try stream.repeatedPictureIDs().isEmpty)
      #expect(try stream.decodedCount() == 6)
    }

    @Test(arguments: 0...1)
    func `a frame that returning hardware fails to rotate does not count as its first picture`(between: Int) throws {
      var configuration = Self.configuration
      configuration.size = Self.tall
      let initial = configuration
      let script = Self.script(.none)
      script.state.withLock { state in
        state.failing = [2]
        state.failingTurn = 3
      }
      let events = EncoderEvents()
      // A machine that is held up is no hang.
      var policy = EncoderLineup.Policy()
      policy.hangLimit = 100
      policy.openingLimit = Duration(seconds: 60)
      let encoder = try EncoderLineup(
        initial, library: "scripted", policy: policy, events: events,
        software: { configuration throws(EncoderError) in try X264Encoder(configuration) }
      ) { _ throws(EncoderError) in try ScriptedHardware(initial, script) }
      try encoder.prepare()
      let (pool, laidPool) = (try FramePool(size: Self.wide), try FramePool(size: Self.tall))
      var stream = CodedStream()
      // A frame that is not rotated comes again, rotated, as from a `TurnOffer`.
      func encode() throws {
        let number = stream.timestamps.count
        let time = Instant.zero + FrameRate.thirty.time(ofFrame: Int64(number))
        var frame = try pool.frame(at: time)
        Self.draw(frame.planes, number)
        frame.orientation = Self.quarter
        var delivered = stream
        do throws(EncoderError) {
          try encoder.encode(frame, keyFrame: true) { delivered.append($0) }
        } catch {
          guard case .notTurned = error else { throw error }
          let laid = try laidPool.frame(at: time)
          Self.draw(laid.planes, number)
          try encoder.encode(laid, keyFrame: true) { delivered.append($0) }
        }
        stream = delivered
      }
      // Two by the hardware, and one or two by the fall-back before the hardware is open again.
      script.state.withLock { $0.hangsAtOpening = true }
      for _ in 0..<3 + between { try encode() }
      #expect(encoder.counters.failovers == 1 && encoder.counters.recoveries == 0)
      script.release()
      #expect(eventually(within: 60) { script.state.withLock { $0.opened == 2 } })
      usleep(500_000)
      #expect(
        try eventually(within: 60) {
          try encode()
          return encoder.counters.recoveries == 1
        })
      for _ in 0..<3 { try encode() }
      // The one that failed was rotated.
      #expect(script.state.withLock { $0.turned } == 3)
      let told = events.take().map(\.description)
      #expect(told.last == "the CPU rotates pictures from now on: the script has it so", "\(told)")
      #expect(encoder.counters.failovers == 1)
      encoder.stop()
      #expect(stream.keyFrames == Array(stream.timestamps.indices))
      #expect(try stream.repeatedPictureIDs().isEmpty)
      #expect(try stream.decodedCount() == stream.timestamps.count)
    }

    @Test func `an encoder that does not rotate refuses a frame to rotate`() throws {
      let encoder = try X264Encoder(Self.configuration)
      defer { encoder.stop() }
      var frame = try FramePool(size: Self.wide).frame()
      frame.orientation = Orientation(.half)
      do {
        try encoder.encode(frame, keyFrame: true) { _ in Issue.record("delivered") }
        Issue.record("taken")
      } catch {
        #expect(error.description == "a frame to rotate by 180 is refused: the encoder does not rotate")
      }
    }

    @Test func `without hardware nothing is left to the encoder`() throws {
      let selection = try Self.select(Self.configuration, .both, .x264) { _ in Self.script(.none) }
      #expect(selection.turning == nil)
      selection.encoder.stop()
    }
  }
#endif
