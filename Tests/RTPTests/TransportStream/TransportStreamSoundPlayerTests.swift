import Foundation
import Media
import Platform
import RTP
import TestSupport
import Testing

/// Our transport streams with sound, as ffmpeg and GStreamer receive them.
@Suite struct TransportStreamSoundPlayerTests {
  /// Two seconds of x264 and libopus, in the order of their times, without RTP headers.
  static func stream(
    _ units: [[[UInt8]]], _ sounds: [[UInt8]], _ channels: OpusChannels, packetSize: Int = PacketSize.standard
  ) throws -> [UInt8] {
    var packetizer = try TransportStreamPacketizer(maximumPacketSize: packetSize, sound: channels)
    let batch = PacketBatch()
    let begin: Int64 = 10_000_000_000
    for (index, sound) in sounds.enumerated() {
      let time = begin + Int64(index) * OpusSample.interval
      // 25 pictures and 50 packets of sound a second.
      if index.isMultiple(of: 2), index / 2 < units.count {
        let unit = units[index / 2]
        withAccessUnit(unit, isKeyFrame: PlayerTests.isKeyFrame(unit), at: time) {
          packetizer.packetize($0, into: batch)
        }
      }
      withAccessUnit([sound], isKeyFrame: true, at: time) { packetizer.packetize(sound: $0, into: batch) }
    }
    return batch.packets.flatMap { $0.dropFirst(RTPHeader.byteCount) }
  }

  @Test(arguments: OpusChannels.allCases)
  func `the tables are those that ffmpeg writes for the same streams`(channels: OpusChannels) throws {
    let units = try PlayerTests.encodedUnits()
    let tones = channels == .stereo ? "sin(t)|cos(t)" : "sin(t)"
    let theirs = try PlayerTests.withFile(PlayerTests.annexB(units), "h264") { path in
      try PlayerTests.run([
        "ffmpeg", "-v", "error", "-i", path, "-f", "lavfi", "-i", "aevalsrc=\(tones):s=48000:d=1", "-c:v", "copy",
        "-c:a", "libopus", "-f", "mpegts", "-",
      ]).output
    }
    let ours = try Self.stream(units, [[0xf8, 1]], channels)
    func table(_ stream: [UInt8], _ pid: Int) -> [UInt8]? {
      stride(from: 0, to: stream.count - 187, by: 188).map { Array(stream[$0..<$0 + 188]) }
        .first { Int($0[1] & 31) << 8 | Int($0[2]) == pid }
    }
    for pid in [0, 0x1000] {
      let packet = try #require(table(ours, pid))
      #expect(table([UInt8](theirs), pid) == packet)
    }
  }

  @Test(arguments: OpusChannels.allCases, [1200, 200])
  func `ffmpeg plays picture and sound without a complaint`(channels: OpusChannels, packetSize: Int) throws {
    let (units, sample) = (try PlayerTests.encodedUnits(), try OpusSample(channels))
    let stream = try Self.stream(units, sample.packets, channels, packetSize: packetSize)
    let reader = TransportStreamReader(stream, hasSound: true)
    #expect(reader.faults.isEmpty && reader.sounds.map(\.bytes) == sample.packets)
    try PlayerTests.withFile(stream, "ts") { path in
      let probed = try PlayerTests.run([
        "ffprobe", "-v", "warning", "-show_entries", "stream=codec_name,channels,sample_rate,duration", "-of",
        "default=noprint_wrappers=1", path,
      ])
      #expect(probed.errors == "")
      let lines = String(decoding: probed.output, as: UTF8.self).split(separator: "\n").map(String.init)
      // 50 pictures; 101 packets of sound, of which ffprobe does not count how long the last one is.
      let expected = [
        "codec_name=h264", "duration=2.000000", "codec_name=opus", "sample_rate=48000", "channels=\(channels.rawValue)",
        "duration=2.000000",
      ]
      // Once as a part of the program, once alone.
      #expect(lines.filter { !$0.hasSuffix("=N/A") } == expected + expected)
      let decoded = try PlayerTests.run([
        "ffmpeg", "-v", "warning", "-xerror", "-i", path, "-map", "0:v", "-fps_mode", "passthrough", "-f", "framecrc",
        path + ".pictures", "-map", "0:a", "-f", "s16le", "-",
      ])
      defer { try? FileManager.default.removeItem(atPath: path + ".pictures") }
      #expect(decoded.errors == "")
      #expect(PlayerTests.checksums(try Data(contentsOf: URL(fileURLWithPath: path + ".pictures"))).count == 50)
      let sound = DecodedSound(decoded.output, channels: channels.rawValue)
      #expect(sound.count == sample.packets.count * OpusSample.samples)
      #expect(sound.has(sample.frequencies), "\(sound.frequencies)")
    }
  }

  @Test func `ffprobe sees sound every 20 ms on the clock of the pictures`() throws {
    let (units, sample) = (try PlayerTests.encodedUnits(), try OpusSample(.stereo))
    try PlayerTests.withFile(try Self.stream(units, sample.packets, .stereo), "ts") { path in
      for (kind, step, count) in [("v", 3600, 50), ("a", 1800, 101)] {
        let probed = try PlayerTests.run([
          "ffprobe", "-v", "warning", "-select_streams", kind, "-show_entries", "packet=pts", "-of", "csv=p=0", path,
        ])
        #expect(probed.errors == "")
        let times = String(decoding: probed.output, as: UTF8.self).split(whereSeparator: { !$0.isNumber })
        #expect(times.compactMap { Int($0) } == (0..<count).map { 900_000 + 9000 + $0 * step })
      }
    }
  }

  @Test(arguments: OpusChannels.allCases)
  func `GStreamer plays the sound and the pictures`(channels: OpusChannels) throws {
    let (units, sample) = (try PlayerTests.encodedUnits(), try OpusSample(channels))
    let directory = try TemporaryDirectory()
    let stream = try directory.write(try Self.stream(units, sample.packets, channels), as: "stream.ts")
    let file = directory.path("sound")
    let played = try Subprocess.run(
      ["gst-launch-1.0", "-q", "filesrc", "location=\(stream)", "!", "tsdemux", "!", "audio/x-opus", "!", "opusdec"]
        + ["!", "audioconvert", "!", "audio/x-raw,format=S16LE,rate=48000,channels=\(channels.rawValue)", "!"]
        + ["filesink", "location=\(file)"], in: directory)
    #expect(played.status == 0 && played.error == "", "\(played.error)")
    let sound = DecodedSound(try Data(contentsOf: URL(fileURLWithPath: file)), channels: channels.rawValue)
    #expect(sound.count == sample.packets.count * OpusSample.samples)
    #expect(sound.has(sample.frequencies), "\(sound.frequencies)")
    let shown = try Subprocess.run(
      ["gst-launch-1.0", "-q", "filesrc", "location=\(stream)", "!", "tsdemux", "!", "h264parse", "!", "avdec_h264"]
        + ["!", "video/x-raw,format=I420", "!", "filesink", "location=\(file)"], in: directory)
    #expect(shown.status == 0 && shown.error == "", "\(shown.error)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: file)).count == 50 * 320 * 240 * 3 / 2)
  }

  @Test(arguments: OpusChannels.allCases)
  func `ffmpeg gets back every size of Opus packet`(channels: OpusChannels) throws {
    // Pictures to the end: 25.5 s.
    let encoded = try PlayerTests.encodedUnits()
    let units = (0..<13).flatMap { _ in encoded }
    // One frame has at most 1275 bytes, RFC 6716 section 3.4.
    let sounds = (2...1276).map { OpusPacketizerTests.opusPacket(bytes: $0, isStereo: channels == .stereo) }
    try PlayerTests.withFile(try Self.stream(units, sounds, channels), "ts") { path in
      let copied = try PlayerTests.run([
        "ffmpeg", "-v", "warning", "-xerror", "-i", path, "-map", "0:a", "-c", "copy", "-f", "data", "-",
      ])
      #expect(copied.errors == "")
      #expect([UInt8](copied.output) == sounds.flatMap { $0 })
      let listed = try PlayerTests.run([
        "ffprobe", "-v", "warning", "-select_streams", "a", "-show_entries", "packet=size", "-of", "csv=p=0", path,
      ])
      let sizes = String(decoding: listed.output, as: UTF8.self).split(whereSeparator: { !$0.isNumber })
      #expect(sizes.compactMap { Int($0) } == sounds.map(\.count))
    }
  }
}
