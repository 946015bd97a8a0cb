import Adaptors
import Decoding
import Foundation
import Media
import Platform
import Receiving
import Synchronization
import TestSupport
import Testing

/// The common timeline of picture and sound: the test tone beeps while a field of the test picture is white.
@Suite struct LipSyncTests {
  /// The last flash that is looked for, once it was seen.
  private final class LastFlash: Sendable {
    let time = Mutex<Instant?>(nil)
  }

  /// A field that becomes white, on a stream's timeline: the first picture of it, and the time since which it may have
  /// been white.
  private struct Flash {
    /// The length of a flash, and of a beep.
    static let length = Duration.milliseconds(100)

    let begin: Instant
    let seen: Instant

    /// Creates the flash that the picture at `seen` shows and the one at `before` does not. At a usual rate it begins
    /// with that picture. Where pictures are missing, it may have begun with one of those, but it has not ended.
    init(seen: Instant, before: Instant) {
      begin = seen - before < .milliseconds(50) ? seen : max(before, seen - Self.length)
      self.seen = seen
    }

    /// Returns the time by which a beep is late, in milliseconds; less than none for one that is early.
    func delay(of beep: Instant) -> Double {
      beep < begin ? (beep - begin).milliseconds : max(0, (beep - seen).milliseconds)
    }
  }

  /// The times at which the field becomes white.
  private static func flashes(
    _ units: AsyncStream<EncodedPicture>, count: Int, _ last: LastFlash
  ) async throws -> [Flash] {
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    var flashes: [Flash] = []
    var (wasWhite, before) = (true, Instant.zero)
    for await unit in units {
      guard let picture = try? decoder.decode(unit).first else { continue }
      let planes = picture.frame.planes
      var sum = 0
      for row in 2..<18 { for column in 2..<18 { sum += Int(planes.luma[row * planes.lumaStride + column]) } }
      let isWhite = sum / 256 > 225
      if isWhite, !wasWhite { flashes.append(Flash(seen: picture.timestamp, before: before)) }
      (wasWhite, before) = (isWhite, picture.timestamp)
      if flashes.count == count { break }
    }
    let end = flashes.last?.begin
    last.time.withLock { $0 = end }
    return flashes
  }

  /// The times at which the tone begins after silence, up to the last flash. On a busy machine sound is missing, and
  /// beeps with it.
  private static func beeps(
    _ packets: AsyncStream<EncodedSound>, count: Int, _ last: LastFlash
  ) async throws -> [Instant] {
    let decoder = try SoundDecoder(configuration: .init(channels: 1))
    var beeps: [Instant] = []
    var quiet = 0
    for await packet in packets {
      for sound in (try? decoder.decode(packet)) ?? [] {
        for (index, sample) in sound.samples.enumerated() {
          guard abs(Int(sample)) > 500 else {
            quiet += 1
            continue
          }
          if quiet > 9600 { beeps.append(sound.timestamp + Duration(nanoseconds: Int64(index) * 1_000_000 / 48)) }
          quiet = 0
        }
      }
      guard beeps.count >= count, let beep = beeps.last, let flash = last.time.withLock({ $0 }) else { continue }
      if beep > flash - .milliseconds(500) { break }
    }
    return beeps
  }

  @Test(arguments: [StreamReceiver.Transport.tcp, .udp])
  func `picture and sound are in step by their time stamps`(way: StreamReceiver.Transport) async throws {
    let directory = try TemporaryDirectory()
    let port = try TCPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--fps", "30", "--control", "none", "--audio",
        "test", "--rtsp", "127.0.0.1:\(port)",
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(await comesTrue { program.errorSoFar.contains("rtsp://") })
    let receiver = try StreamReceiver(
      .rtsp(StreamURL("rtsp://127.0.0.1:\(port)/camera")), configuration: .init(transport: way, reconnects: false))
    let end = Task {
      try? await Task.sleep(for: .seconds(300))
      receiver.stop()
    }
    defer { end.cancel() }
    let (units, packets) = (receiver.accessUnits(.newest(512)), receiver.soundPackets(.newest(512)))
    try receiver.start()
    let last = LastFlash()
    async let flashes = Self.flashes(units, count: 14, last)
    async let beeps = Self.beeps(packets, count: 10, last)
    let (seen, heard) = (try await flashes, try await beeps)
    receiver.stop()
    #expect(seen.count == 14 && heard.count >= 10, "\(seen) \(heard)")
    // The first reports of both clocks come within the first second or two, or six on a busy machine. A flash comes with the first
    // picture of its second. Picture and sound begin at different seconds: what came while the other did not is compared with
    // nothing.
    let skews = seen.dropFirst(6).compactMap { flash in
      heard.map { flash.delay(of: $0) }.min { abs($0) < abs($1) }
    }.filter { abs($0) < 500 }
    #expect(skews.count >= 3 && skews.allSatisfy { abs($0) < 60 }, "\(skews) ms")
  }
}
