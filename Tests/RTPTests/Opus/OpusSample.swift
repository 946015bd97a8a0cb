import Foundation
import RTP

/// Sound as libopus encodes it: 440 Hz, on the right 880 Hz if there are two channels.
struct OpusSample {
  /// Two seconds, 20 ms each, and what the encoder still held at the end.
  let packets: [[UInt8]]
  /// The frequencies by channel in hertz.
  let frequencies: [Double]
  /// The samples of each packet and channel, at 48 kHz.
  static let samples = 960
  /// The duration of a packet.
  static let interval: Int64 = 20_000_000

  init(_ channels: OpusChannels, bitrate: String = "64k") throws {
    frequencies = channels == .stereo ? [440, 880] : [440]
    let tones = frequencies.map { "0.5*sin(\($0)*2*PI*t)" }.joined(separator: "|")
    let ogg = try PlayerTests.run([
      "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "aevalsrc=\(tones):s=48000:d=2", "-c:a", "libopus", "-b:a", bitrate,
      "-frame_duration", "20", "-f", "ogg", "-",
    ]).output
    // RFC 7845 section 3: two headers come first.
    packets = Array(Self.packets(inOgg: [UInt8](ogg)).dropFirst(2))
  }

  /// The packets of a single logical stream, RFC 3533 section 6.
  static func packets(inOgg stream: [UInt8]) -> [[UInt8]] {
    var packets: [[UInt8]] = []
    var packet: [UInt8] = []
    var start = 0
    while start + 27 <= stream.count, stream[start..<start + 4].elementsEqual("OggS".utf8) {
      let body = start + 27 + Int(stream[start + 26])
      var place = body
      for length in stream[start + 27..<body].map(Int.init) {
        packet += stream[place..<place + length]
        place += length
        if length < 255 {
          packets.append(packet)
          packet = []
        }
      }
      start = place
    }
    return packets
  }
}

/// Decoded sound: 16 bits, little endian, channels interleaved.
struct DecodedSound {
  let channels: [[Int16]]

  init(_ bytes: Data, channels count: Int) {
    let samples = stride(from: 0, to: bytes.count - 1, by: 2).map {
      Int16(truncatingIfNeeded: Int(bytes[bytes.startIndex + $0]) | Int(bytes[bytes.startIndex + $0 + 1]) << 8)
    }
    channels = (0..<count).map { channel in stride(from: channel, to: samples.count, by: count).map { samples[$0] } }
  }

  /// The samples of a channel.
  var count: Int { channels.first?.count ?? 0 }

  /// The frequency of each channel in hertz: how often the middle second rises through zero.
  var frequencies: [Double] {
    channels.map { samples in
      guard samples.count > 72_000 else { return 0 }
      let middle = samples[24_000..<72_000]
      return Double(zip(middle, middle.dropFirst()).count { $0 < 0 && $1 >= 0 })
    }
  }

  /// Returns `true` if each channel has its tone, to one hertz.
  func has(_ tones: [Double]) -> Bool {
    let found = frequencies
    return found.count == tones.count && zip(found, tones).allSatisfy { abs($0 - $1) <= 1 }
  }
}
