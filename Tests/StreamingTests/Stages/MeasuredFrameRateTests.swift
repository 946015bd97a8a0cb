import Capture
import Encoding
import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// The measured rate of frames: which intervals count, and for how much.
@Suite(.serialized) struct MeasuredFrameRateTests {
  private var rate = MeasuredFrameRate(nominal: .thirty)
  private var time = 100.0

  /// Takes `count` frames at `framesPerSecond`; the rates that were told.
  private mutating func frames(_ count: Int, at framesPerSecond: Double) -> [Double] {
    (0..<count).compactMap { _ in
      time += 1 / framesPerSecond
      return rate.change(at: Instant(seconds: time))?.framesPerSecond
    }
  }

  @Test(arguments: [0.5, 1.5, 4.9, 60])
  mutating func `a pause while nothing is encoded is no interval`(pause: Double) {
    #expect(frames(60, at: 30) == [])
    rate.rest()
    time += pause
    #expect(frames(300, at: 30) == [])
  }

  @Test(arguments: [0.1, 1.5, 4.9, 60])
  mutating func `no single interval changes the rate, however long`(interval: Double) {
    #expect(frames(60, at: 30) == [])
    time += interval
    #expect(frames(300, at: 30) == [])
  }

  @Test mutating func `a rate that lasts is told, and so is where it ends`() throws {
    let down = frames(300, at: 15)
    #expect(abs(try #require(down.last) - 15) < 0.5, "\(down)")
    #expect(down.count < 10 && down == down.sorted(by: >))
    // Back where it came from: not 27 for ever.
    let up = frames(300, at: 30)
    #expect(up.last == 30, "\(up)")
    // Slow and fast at the limits.
    #expect(abs(try #require(frames(300, at: 5).last) - 5) < 0.2)
    #expect(abs(try #require(frames(600, at: 120).last) - 120) < 4)
  }

  @Test func `the description of a stream that has rested says the camera's rate`() throws {
    let running = try RunningPipeline(
      SizedEncoder(keyBytes: 3000, bytes: 500), to: [], from: UnhurriedCamera(isEven: true), restsUnwatched: true)
    defer { running.end() }
    let pipeline = running.pipeline
    let socket = try TestSocket.pair().media
    let destination = StreamDestination(host: "127.0.0.1", port: socket.port)
    func encoded() -> Int { pipeline.statistics.encoded }
    func rested() -> Int { pipeline.statistics.unwatched }
    // A rest that counted would change the average by a twentieth, and each frame takes back a twentieth of that. So there are many
    // rests, with few frames between them.
    for round in 1...12 {
      let id = try pipeline.add(destination)
      let before = encoded()
      try #require(eventually { encoded() >= before + 3 })
      let description = try #require(pipeline.sessionDescription(for: id, sessionID: 1)).text
      let line = description.split(separator: "\r\n").first { $0.hasPrefix("a=framerate:") }
      #expect(line == "a=framerate:30", "round \(round)")
      pipeline.remove(id)
      let unwatched = rested()
      try #require(eventually { rested() >= unwatched + 3 })
    }
  }
}
