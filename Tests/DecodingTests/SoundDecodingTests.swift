import Adaptors
import COpus
import Decoding
import Foundation
import Platform
import RTP
import TestSupport
import Testing

/// The decoder of sound, beside ffmpeg with libopus.
@Suite struct SoundDecodingTests {
  /// The packets of an Ogg file (RFC 3533), without the two of its head (RFC 7845 section 5).
  private static func packets(ofOgg file: [UInt8]) -> [[UInt8]] {
    var packets: [[UInt8]] = []
    var open: [UInt8] = []
    var position = 0
    while position + 27 <= file.count, file[position..<position + 4].elementsEqual("OggS".utf8) {
      let lengths = file[(position + 27)...].prefix(Int(file[position + 26]))
      position += 27 + lengths.count
      for length in lengths {
        open += file[position..<position + Int(length)]
        position += Int(length)
        // A length below 255 ends a packet.
        if length < 255 { (packets, open) = (packets + [open], []) }
      }
    }
    return Array(packets.dropFirst(2))
  }

  private static func encoded(_ packets: [[UInt8]]) throws -> [EncodedSound] {
    var position: Int64 = 0
    return try packets.map { packet in
      let sound = EncodedSound(
        bytes: packet, position: position, timestamp: Instant(nanoseconds: position * 1_000_000 / 48),
        captured: Instant(nanoseconds: 7))
      position += Int64(try packet.withUnsafeBytes { try OpusPacket(parsing: $0) }.samples)
      return sound
    }
  }

  /// Two tones and noise, different in each channel, as ffmpeg codes them by `options`; and as it decodes them.
  private static func clip(
    _ options: [String], channels: Int, seconds: Int = 2
  ) throws -> (packets: [EncodedSound], samples: [Int16], skipped: Int) {
    let directory = try TemporaryDirectory()
    let (ogg, raw) = (directory.path("sound.opus"), directory.path("sound.raw"))
    let tones = ["0.2*sin(2*PI*(200+100*t)*t)+0.02*random(0)", "0.2*sin(2*PI*700*t)*sin(2*PI*2*t)+0.02*random(1)"]
    let source = "aevalsrc=\(tones.prefix(channels).joined(separator: "|")):s=48000:d=\(seconds)"
    let made = try Subprocess.run(
      ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", source, "-c:a", "libopus"] + options + [ogg],
      in: directory)
    try #require(made.status == 0, "\(made.error)")
    let read = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-nostdin", "-c:a", "libopus", "-i", ogg, "-f", "s16le", "-ac", "\(channels)", raw,
      ], in: directory)
    try #require(read.status == 0, "\(read.error)")
    let samples = try Data(contentsOf: URL(fileURLWithPath: raw)).withUnsafeBytes { bytes in
      (0..<bytes.count / 2).map { bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self) }
    }
    let file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: ogg)))
    // The samples that decoders of files leave out at the beginning (RFC 7845 section 5.1): 10 bytes behind the magic's first.
    let head = try #require(file.firstRange(of: Array("OpusHead".utf8)))
    let skipped = Int(file[head.lowerBound + 10]) | Int(file[head.lowerBound + 11]) << 8
    return (try encoded(packets(ofOgg: file)), samples, skipped)
  }

  @Test(
    arguments: [
      (["-b:a", "64k"], 1), (["-b:a", "96k"], 2), (["-b:a", "12k", "-application", "voip"], 1),
      (["-b:a", "32k", "-frame_duration", "60"], 2), (["-b:a", "128k", "-frame_duration", "2.5"], 1),
      (["-b:a", "24k", "-application", "voip", "-frame_duration", "120"], 2),
    ] as [([String], Int)])
  func `samples are those of ffmpeg with libopus`(options: [String], channels: Int) throws {
    let clip = try Self.clip(options, channels: channels)
    let decoder = try SoundDecoder(configuration: .init(channels: channels))
    var samples: [Int16] = []
    for packet in clip.packets {
      let sound = try decoder.decode(packet)
      #expect(sound.count == 1 && sound[0].position == packet.position && sound[0].timestamp == packet.timestamp)
      #expect(!sound[0].isConcealed && sound[0].captured == packet.captured && sound[0].channels == channels)
      samples += sound[0].samples
    }
    let own = samples.dropFirst(clip.skipped * channels)
    // The file's end is cut where the sound ended.
    #expect(clip.samples.count > 90_000 * channels && own.count >= clip.samples.count)
    #expect(own.prefix(clip.samples.count).elementsEqual(clip.samples) as Bool)
    #expect(decoder.counts.packets == UInt64(clip.packets.count) && decoder.counts.samplesConcealed == 0)
  }

  @Test func `lost packets are filled in their place, and by their copies in the next ones`() throws {
    let clip = try Self.clip(
      ["-b:a", "24k", "-application", "voip", "-fec", "1", "-packet_loss", "20"], channels: 1, seconds: 4)
    func decode(_ isLost: (Int) -> Bool) throws -> [DecodedSound] {
      let decoder = try SoundDecoder(configuration: .init(channels: 1))
      return try clip.packets.enumerated().flatMap { isLost($0.offset) ? [] : try decoder.decode($0.element) }
    }
    let whole = try decode { _ in false }.flatMap(\.samples)
    let isLost = { (index: Int) in index % 10 == 5 || index % 40 == 16 }
    let parts = try decode(isLost)
    // Nothing is missing, and everything is in its place.
    var position: Int64 = 0
    for part in parts {
      #expect(part.position == position && part.timestamp == Instant(nanoseconds: position * 1_000_000 / 48))
      position += Int64(part.length)
    }
    #expect(position == whole.count)
    #expect(parts.filter(\.isConcealed).count >= clip.packets.count / 10)
    // A copy is coarse, and still nearer to the sound than what libopus makes up without one.
    func difference(_ samples: [Int16]) -> Double {
      zip(whole, samples).reduce(0) { sum, pair in
        let difference = Double(pair.0) - Double(pair.1)
        return sum + difference * difference
      }
    }
    let (filled, made) = (difference(parts.flatMap(\.samples)), difference(try Self.concealed(clip.packets, isLost)))
    #expect(filled > 0 && filled < made * 0.7, "\(filled / made)")
  }

  /// The sound of libopus itself, which has nothing in place of the lost packets.
  private static func concealed(_ packets: [EncodedSound], _ isLost: (Int) -> Bool) throws -> [Int16] {
    let handle = try #require(opus_decoder_create(48_000, 1, nil))
    defer { opus_decoder_destroy(handle) }
    var samples = [Int16](repeating: 0, count: 960)
    return packets.enumerated().flatMap { index, packet in
      let bytes = isLost(index) ? nil : packet.bytes
      #expect(opus_decode(handle, bytes, Int32(bytes?.count ?? 0), &samples, 960, 0) == 960)
      return samples
    }
  }

  @Test func `a long gap is left out, and what comes after is right`() throws {
    let clip = try Self.clip(["-b:a", "64k"], channels: 2)
    let decoder = try SoundDecoder(configuration: .init(channels: 2, maximumGap: .milliseconds(100)))
    try decoder.decode(clip.packets[0])
    // 100 ms are filled, 120 are not.
    #expect(try decoder.decode(clip.packets[6]).map(\.length) == [4800, 960])
    #expect(try decoder.decode(clip.packets[13]).map(\.length) == [960])
    #expect(decoder.counts.gaps == 1 && decoder.counts.samplesConcealed == 4800)
    // A sender that begins anew, at any place.
    for position in [0, Int64.max, .min, 960] {
      let packet = EncodedSound(bytes: clip.packets[20].bytes, position: position, timestamp: .zero)
      #expect(try decoder.decode(packet).map(\.isConcealed) == [false])
    }
    #expect(decoder.counts.gaps == 5)
  }

  @Test func `subscribers get the newest sound, and the end`() async throws {
    let clip = try Self.clip(["-b:a", "64k"], channels: 1)
    let decoder = try SoundDecoder()
    let (all, newest) = (decoder.decodedSound(.all), decoder.decodedSound(.newest(2)))
    for packet in clip.packets { try decoder.decode(packet) }
    decoder.invalidate()
    var counts = (0, 0)
    for await _ in all { counts.0 += 1 }
    for await _ in newest { counts.1 += 1 }
    #expect(counts == (clip.packets.count, 2))
    #expect(throws: SoundDecoderError.invalidated) { try decoder.decode(clip.packets[0]) }
    for configuration in [SoundDecoder.Configuration(channels: 0), .init(channels: 3), .init(maximumGap: .seconds(6))] {
      #expect(throws: SoundDecoderError.self) { _ = try SoundDecoder(configuration: configuration) }
    }
  }

  @Test func `what is no packet is refused by its reason, and the next one is heard`() throws {
    let clip = try Self.clip(["-b:a", "64k"], channels: 1)
    let decoder = try SoundDecoder()
    func packet(_ bytes: [UInt8]) -> EncodedSound { EncodedSound(bytes: bytes, position: 0, timestamp: .zero) }
    #expect(throws: SoundDecoderError.packetSize(61_441, limit: 61_440)) {
      try decoder.decode(packet([UInt8](repeating: 0xfc, count: 61_441)))
    }
    for bytes in [[], [0xff], [0xff, 0], [0xfd, 1], [0xff, 0x3f]] as [[UInt8]] {
      #expect(throws: SoundDecoderError.self, "\(bytes)") { try decoder.decode(packet(bytes)) }
    }
    #expect(decoder.counts.refused == 6)
    var random = SeededGenerator(seed: 7587)
    for _ in 0..<3000 {
      var bytes = clip.packets[Int.random(in: clip.packets.indices, using: &random)].bytes
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
      let position = Int64.random(in: 0...48_000, using: &random)
      let sound = (try? decoder.decode(EncodedSound(bytes: bytes, position: position, timestamp: .zero))) ?? []
      #expect(sound.reduce(0) { $0 + $1.length } <= 9600 + OpusPacket.sampleLimit)
    }
    #expect(
      try decoder.decode(EncodedSound(bytes: clip.packets[9].bytes, position: 1 << 40, timestamp: .zero)).count == 1)
  }

  @Test func `a packet's length is that of libopus`() {
    for first in UInt8.min ... .max {
      for second in [0, 1, 2, 3, 6, 12, 24, 47, 48, 49, 63, 0xc1, 0xff] as [UInt8] {
        for bytes in [[first], [first, second], [first, second, 0]] {
          let samples = opus_packet_get_nb_samples(bytes, Int32(bytes.count), 48_000)
          let parsed = try? bytes.withUnsafeBytes { try OpusPacket(parsing: $0) }
          // libopus finds two frames of unequal size later.
          let isUnequal = first & 3 == 1 && bytes.count == 2
          #expect(parsed?.samples ?? -4 == (samples > 0 && !isUnequal ? Int(samples) : -4), "\(bytes)")
          if let parsed { #expect(parsed.isStereo == (opus_packet_get_nb_channels(bytes) == 2)) }
        }
      }
    }
  }
}
