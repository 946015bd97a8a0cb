import Capture
import Foundation
import Media
import Platform
import RTP
import Sound
import Streaming
import Synchronization
import TestSupport
import Testing

/// Consumers of coded pictures beside the send stage.
@Suite(.serialized) struct CodedPictureConsumerTests {
  /// A consumer that keeps whole access units, as many as it has room for, from a key frame on.
  private final class Collector: CodedPictureConsumer {
    private struct State {
      var units: [[[UInt8]]] = []
      var open: [[UInt8]] = []
      var dropped = 0
      var awaitsKeyFrame = true
      /// `true` once a key frame has come: what came before that was nothing to begin with.
      var hasBegun = false
      var isClosed = false
    }
    private let state = Mutex(State())
    private let room: Int

    init(room: Int = .max) { self.room = room }

    var units: [[[UInt8]]] { state.withLock { $0.units } }
    var dropped: Int { state.withLock { $0.dropped } }
    var isClosed: Bool { state.withLock { $0.isClosed } }
    /// Takes the units out, so that there is room for others.
    func drain() -> [[[UInt8]]] {
      state.withLock { state in
        defer { state.units = [] }
        return state.units
      }
    }

    func take(_ unit: borrowing AccessUnit) {
      let bytes = unit.nalUnits.map { Array($0.bytes) }
      let (isKey, isFirst, isLast) = (unit.isKeyFrame, unit.isFirstPart, unit.isLastPart)
      state.withLock { state in
        if isFirst {
          state.open = []
          if isKey { (state.awaitsKeyFrame, state.hasBegun) = (false, true) }
        }
        guard !state.awaitsKeyFrame else { return state.dropped += isLast && state.hasBegun ? 1 : 0 }
        state.open += bytes
        guard isLast else { return }
        guard state.units.count < room else {
          state.dropped += 1
          state.awaitsKeyFrame = true
          return
        }
        state.units.append(state.open)
      }
    }

    func breakOff() { state.withLock { ($0.open, $0.awaitsKeyFrame) = ([], true) } }
    func close() { state.withLock { $0.isClosed = true } }
  }

  /// Writes a picture of `slices` parts. Returns what became of the last one.
  @discardableResult
  private func write(
    _ slices: [[UInt8]], isKeyFrame: Bool, at time: Int64, isEnded: Bool = true, to consumers: CodedPictureConsumers
  ) -> CodedPictureWriter.Outcome? {
    var outcome: CodedPictureWriter.Outcome?
    for (index, slice) in slices.enumerated() {
      slice.withUnsafeBytes { bytes in
        guard let nalUnit = NALUnit(bytes) else { return }
        withUnsafePointer(to: nalUnit) {
          let isLast = isEnded && index == slices.count - 1
          outcome = consumers.take(
            AccessUnit(
              nalUnits: UnsafeBufferPointer(start: $0, count: 1), isKeyFrame: isKeyFrame,
              timestamp: Instant.zero + .milliseconds(time), captured: Instant.zero + .milliseconds(time),
              isFirstPart: index == 0,
              isLastPart: isLast), encoded: .now())
        }
      }
    }
    if !isEnded { consumers.breakOff() }
    return outcome
  }

  /// Takes all that the queue has, as the send stage does.
  private func takeAll(_ queue: CodedPictureQueue) -> [[[UInt8]]] {
    var pictures: [[[UInt8]]] = []
    while case .picture(let picture) = queue.take() {
      if picture.part.isLastPart, !picture.isBroken {
        pictures.append(picture.accessUnit.nalUnits.map { Array($0.bytes) })
      }
      if picture.part.isLastPart || picture.isBroken { queue.release(picture) }
    }
    return pictures
  }

  @Test func `both get every picture, in parts or whole, and none that was broken off`() throws {
    let queue = try CodedPictureQueue(capacity: 4096, held: 8)
    let consumers = CodedPictureConsumers(queue)
    let collector = Collector()
    consumers.add(collector)
    var sent: [[[UInt8]]] = []
    for (number, slices) in [(0, [[0x65, 1]]), (1, [[0x41, 2], [0x41, 3]]), (2, [[0x41, 4]])] as [(Int, [[UInt8]])] {
      #expect(consumers.reserve())
      write(slices, isKeyFrame: number == 0, at: Int64(number), to: consumers)
      sent += takeAll(queue)
    }
    #expect(sent == [[[0x65, 1]], [[0x41, 2], [0x41, 3]], [[0x41, 4]]])
    #expect(collector.units == sent)
    write([[0x41, 5], [0x41, 6]], isKeyFrame: false, at: 3, isEnded: false, to: consumers)
    #expect(takeAll(queue).isEmpty)
    write([[0x65, 7]], isKeyFrame: true, at: 4, to: consumers)
    #expect(takeAll(queue) == [[[0x65, 7]]])
    #expect(collector.units == sent + [[[0x65, 7]]] && collector.dropped == 0)
    #expect(consumers.remove(collector) && !consumers.remove(collector))
    write([[0x65, 8]], isKeyFrame: true, at: 5, to: consumers)
    #expect(takeAll(queue).count == 1 && collector.units.count == 4)
  }

  @Test func `a picture that the send stage has no room for goes to nobody`() throws {
    let queue = try CodedPictureQueue(capacity: 100)
    let consumers = CodedPictureConsumers(queue)
    let collector = Collector()
    consumers.add(collector)
    let large = [0x65] + [UInt8](repeating: 1, count: 200)
    #expect(write([large], isKeyFrame: true, at: 0, to: consumers) == .tooLarge)
    #expect(takeAll(queue).isEmpty && collector.units.isEmpty)
    // Nor does the rest of one whose first part went.
    #expect(write([[0x65, 1], large], isKeyFrame: true, at: 0, to: consumers) == .tooLarge)
    #expect(takeAll(queue).isEmpty && collector.units.isEmpty)
    // Its room is that of the next.
    write([[0x65, 1]], isKeyFrame: true, at: 1, to: consumers)
    #expect(takeAll(queue).count == 1 && collector.units.count == 1)
    consumers.close()
    #expect(collector.isClosed && !consumers.reserve())
    // Whoever comes after the end is told of it.
    let late = Collector()
    consumers.add(late)
    #expect(late.isClosed && !consumers.remove(late))
  }

  @Test func `a consumer that takes nothing out drops for itself alone, and a viewer gets every frame`() throws {
    let socket = try TestSocket.pair()
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500),
      to: [StreamDestination(host: "127.0.0.1", port: socket.media.port)], from: UnhurriedCamera())
    let (full, lively) = (Collector(room: 5), Collector(room: 1000))
    running.pipeline.add(full)
    running.pipeline.add(lively)
    #expect(eventually { lively.units.count >= 60 && full.dropped > 0 })
    #expect(full.units.count == 5)
    let statistics = running.pipeline.statistics
    #expect(statistics.dropped == 0 && statistics.destinations[0].framesDropped == 0)
    #expect(lively.dropped == 0)
    // It begins with a key frame and its parameter sets, and lacks none after it.
    #expect(lively.units[0].map { $0[0] & 31 } == [7, 8, 5])
    #expect(lively.units.dropFirst().allSatisfy { $0.last?.first.map { $0 & 31 == 1 || $0 & 31 == 5 } == true })
    // Once there is room, it goes on with a key frame.
    #expect(full.drain().count == 5)
    running.pipeline.requestKeyFrame()
    #expect(eventually { full.units.first?.last?.first == 0x65 })
    #expect(running.pipeline.remove(full) && !running.pipeline.remove(full))
    running.end()
    #expect(lively.isClosed && !full.isClosed)
  }

  @Test func `a camera that rests unwatched is encoded for a consumer`() throws {
    let running = try RunningPipeline(SizedEncoder(keyBytes: 3000, bytes: 500), to: [], restsUnwatched: true)
    defer { running.end() }
    let pipeline = running.pipeline
    #expect(eventually { pipeline.statistics.unwatched > 3 })
    #expect(pipeline.statistics.encoded == 0)
    let collector = Collector()
    pipeline.add(collector)
    #expect(eventually { collector.units.count > 3 })
    #expect(pipeline.remove(collector))
    let unwatched = pipeline.statistics.unwatched
    #expect(eventually { pipeline.statistics.unwatched > unwatched + 3 })
  }

  @Test func `a consumer takes sound, another takes pictures, and each track rests without any`() throws {
    let pipeline = try Pipeline(
      source: try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty),
      encoder: try SizedEncoder(keyBytes: 3000, bytes: 500), destinations: [],
      sound: (try ToneSource(), SoundSettings()), keyFrameInterval: Duration(seconds: 1000), restsUnwatched: true)
    let track = try #require(pipeline.soundTrack)
    try pipeline.start()
    let (sound, pictures) = (Collector(), Collector())
    pipeline.add(sound, to: track)
    #expect(eventually { sound.units.count >= 50 })
    #expect(pipeline.statistics.encoded == 0, "the encoder of pictures rests")
    // One Opus packet each (RFC 6716 section 3.1): 20 ms, in one frame.
    #expect(sound.units.allSatisfy { $0.count == 1 && ($0[0].first ?? 0xFF) & 3 == 0 })
    pipeline.add(pictures)
    #expect(eventually { pictures.units.count > 3 })
    #expect(pictures.units[0].map { $0[0] & 31 } == [7, 8, 5])
    #expect(pipeline.remove(pictures))
    let heard = sound.units.count
    #expect(eventually { sound.units.count > heard + 10 })
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
    #expect(sound.isClosed && !pictures.isClosed)
  }
}
