#if X264
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing
  import X264

  import Encoding

  /// An encoder whose effort changes again and again, as a governor changes it.
  @Suite struct EffortChangeTests {
    @Test(arguments: [H264Profile.baseline, .high])
    func `200 changes of the preset lose no picture, and ffmpeg decodes each`(profile: H264Profile) throws {
      var configuration = EncoderConfiguration(
        size: TurningStream.landscape, frameRate: .thirty, bitrate: 500_000, color: .bt709, profile: profile,
        x264Preset: "superfast")
      configuration.bufferSeconds = 0.5
      let encoder = try EncoderLineup(
        configuration, aspects: .scaled,
        software: { configuration throws(EncoderError) in try X264Encoder(configuration) })
      try encoder.prepare()
      var turning = try TurningStream(encoder)
      try turning.encode(3, TurningStream.landscape)
      var numbers = SystemRandomNumberGenerator()
      var step = 1
      var exchanged = 0
      for change in 0..<200 {
        step = (0..<5).filter { $0 != step }.randomElement(using: &numbers) ?? 0
        let effort = EncodingEffort(rawValue: step)
        let name = try #require(EncoderSelector.preset(of: effort))
        encoder.restrict(EncoderRestrictions(effort: effort))
        if encoder.namedPreset != name {
          // The running encoder cannot change to it. Frames go on until the other one is ready and a key frame is due.
          exchanged += 1
          try turning.encode(change % 3, encoder.frameSize(for: TurningStream.landscape))
          let isReady = eventually { encoder.isStandbyReady || encoder.namedPreset == name }
          try #require(isReady)
          try turning.encode(1, encoder.frameSize(for: TurningStream.landscape), keyFrame: true)
        }
        try #require(encoder.namedPreset == name, "\(encoder.name) instead of \(name)")
        try turning.encode(2, encoder.frameSize(for: TurningStream.landscape), keyFrame: change.isMultiple(of: 7))
      }
      #expect(encoder.counters.adaptations == 200)
      #expect(exchanged > 20 && exchanged < 200)
      #expect(encoder.events.take().isEmpty)
      encoder.stop()
      try turning.check()
    }

    @Test func `another number of threads begins at a key frame that is due, and ffmpeg decodes each picture`() throws {
      var configuration = EncoderConfiguration(
        size: TurningStream.landscape, frameRate: .thirty, bitrate: 500_000, color: .bt709, x264Preset: "veryfast")
      configuration.bufferSeconds = 0.5
      let encoder = try EncoderLineup(
        configuration, aspects: .both,
        software: { configuration throws(EncoderError) in try X264Encoder(configuration) })
      try encoder.prepare()
      var turning = try TurningStream(encoder)
      try turning.encode(3, TurningStream.landscape)
      for (round, threads) in [2, nil, 2, nil].enumerated() {
        let name = threads == nil ? "veryfast, 1 thread" : "veryfast, 2 threads"
        encoder.restrict(EncoderRestrictions(threads: threads))
        let isReady = eventually { encoder.isStandbyReady }
        try #require(isReady)
        // A key frame of its own costs bits, and nothing is urgent.
        try turning.encode(5, encoder.frameSize(for: TurningStream.landscape))
        #expect(!encoder.name.hasSuffix(name))
        try turning.encode(1, encoder.frameSize(for: TurningStream.landscape), keyFrame: true)
        #expect(encoder.name.hasSuffix(name), "\(encoder.name)")
        #expect(encoder.counters.adaptations == 3 * round + 1)
        // A lesser effort and the former one need no other encoder.
        let lesser = EncoderSelector.effort(ofPreset: "superfast")
        for (effort, preset) in [(lesser, "superfast"), (nil, "veryfast")] {
          encoder.restrict(EncoderRestrictions(effort: effort, threads: threads))
          #expect(encoder.namedPreset == preset && encoder.name.hasSuffix(name.suffix(9)), "\(encoder.name)")
          try turning.encode(3, encoder.frameSize(for: TurningStream.landscape))
        }
        // The encoder of the other aspect has as many.
        try turning.encode(2, encoder.frameSize(for: TurningStream.portrait))
        #expect(encoder.name.hasSuffix(name), "\(encoder.name)")
        try turning.encode(2, encoder.frameSize(for: TurningStream.landscape))
      }
      #expect(encoder.events.take().isEmpty)
      encoder.stop()
      try turning.check()
    }
  }
#endif
