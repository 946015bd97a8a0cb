import Foundation
import Media
import Platform
import RTP
import Streaming

/// A source of sound whose every sample tells its number: what the encoder of a second track is to the pipeline.
final class SoundSource {
  /// 20 ms: more than a packet of RTSP holds.
  static let samples = 960
  static let interval = Duration.milliseconds(20)
  static let format = TrackFormat(
    payload: StreamPayload(L16PayloadFormat()), bitrate: 768_000, interval: interval, unitBytes: 2 * samples)

  private var thread: NamedThread?

  /// Puts a unit into `track` every 20 ms until the track ends.
  init(_ track: Track) throws {
    thread = try NamedThread("sound") {
      let begin = Instant.now()
      var number = 0
      while track.reserve() {
        let time = begin + Duration(nanoseconds: Self.interval.nanoseconds * Int64(number))
        let rest = time - .now()
        if rest > .zero { usleep(UInt32(rest.nanoseconds / 1000)) }
        Self.unit(from: number * Self.samples).withUnsafeBytes { bytes in
          guard let unit = NALUnit(bytes) else { return }
          withUnsafePointer(to: unit) { pointer in
            let unit = AccessUnit(
              nalUnits: UnsafeBufferPointer(start: pointer, count: 1), isKeyFrame: true, timestamp: time,
              captured: .now())
            track.take(unit)
          }
        }
        number += 1
      }
    }
  }

  /// Waits until the track has ended.
  func waitUntilEnd() { thread = nil }

  /// The sample of a number, in network byte order; 65,536 numbers have different ones.
  static func sample(_ number: Int) -> [UInt8] {
    let value = UInt16(truncatingIfNeeded: number &* 7919)
    return [UInt8(value >> 8), UInt8(value & 0xff)]
  }

  private static func unit(from first: Int) -> [UInt8] { (first..<first + samples).flatMap(sample) }

  /// Returns the number of the first of these samples, and how many follow one another from there.
  static func run(_ bytes: Data) -> (first: Int, count: Int)? {
    let bytes = Array(bytes)
    guard bytes.count >= 2, let first = (0..<65_536).first(where: { sample($0) == Array(bytes[..<2]) }) else {
      return nil
    }
    var count = 0
    while 2 * count + 2 <= bytes.count, sample(first + count) == Array(bytes[2 * count..<2 * count + 2]) { count += 1 }
    return (first, count)
  }
}
