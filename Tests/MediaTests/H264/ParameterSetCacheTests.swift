import Foundation
import Media
import Platform
import TestSupport
import Testing

@Suite struct ParameterSetCacheTests {
  /// An access unit of `units`, through `cache`; what came out.
  private static func complete(_ cache: ParameterSetCache, _ units: [[UInt8]]) throws -> [[UInt8]] {
    let memory = units.map { unit in
      let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: unit.count, alignment: 1)
      memory.copyBytes(from: unit)
      return memory
    }
    defer { for buffer in memory { buffer.deallocate() } }
    let nalUnits = memory.compactMap { NALUnit(UnsafeRawBufferPointer($0)) }
    var result: [[UInt8]] = []
    let isKeyFrame = units.contains { $0[0] & 0x1f == 5 }
    try nalUnits.withUnsafeBufferPointer { pointer throws in
      let unit = AccessUnit(
        nalUnits: pointer, isKeyFrame: isKeyFrame, timestamp: Instant(seconds: 1), captured: Instant(seconds: 2))
      try cache.complete(unit) { completed in
        #expect(completed.isKeyFrame == isKeyFrame)
        #expect(completed.timestamp == Instant(seconds: 1) && completed.captured == Instant(seconds: 2))
        result = completed.nalUnits.map { Array($0.bytes) }
      }
    }
    return result
  }

  private static let sequence: [UInt8] = [0x67, 66, 0xc0, 30, 1]
  private static let picture: [UInt8] = [0x68, 0xce, 0x3c]
  private static let delimiter: [UInt8] = [0x09, 0x10]
  private static let information: [UInt8] = [0x06, 5, 1, 9, 0x80]
  private static let key: [UInt8] = [0x65, 0x88]
  private static let delta: [UInt8] = [0x41, 0x9a]

  @Test func `they come before every key frame, behind the delimiter`() throws {
    let cache = ParameterSetCache(codec: .h264)
    #expect(try Self.complete(cache, [Self.key]) == [Self.key])
    #expect(!cache.isComplete && cache.parameterSets == nil)
    let whole = [Self.delimiter, Self.sequence, Self.picture, Self.information, Self.key]
    #expect(try Self.complete(cache, whole) == whole)
    #expect(cache.parameterSets == ParameterSets(sequence: Self.sequence, picture: Self.picture))
    #expect(try Self.complete(cache, [Self.delimiter, Self.delta]) == [Self.delimiter, Self.delta])
    #expect(try Self.complete(cache, [Self.delimiter, Self.information, Self.key]) == whole)
    #expect(try Self.complete(cache, [Self.key]) == [Self.sequence, Self.picture, Self.key])
    // One alone is completed by the other, in the order that decoders want.
    let other: [UInt8] = [0x68, 0xee]
    #expect(try Self.complete(cache, [other, Self.key]) == [Self.sequence, other, Self.key])
    #expect(cache.changes == 3)
  }

  @Test func `others read both sets at once, and how often these were exchanged`() throws {
    let cache = ParameterSetCache(codec: .h264)
    #expect(cache.current == nil)
    cache.update(try #require(ParameterSets(sequence: Self.sequence, picture: Self.picture)))
    #expect(cache.current?.revision == 1)
    // The same again are no change; two others are one.
    _ = try Self.complete(cache, [Self.sequence, Self.picture, Self.key])
    #expect(cache.current?.revision == 1)
    let (sequence, picture) = (Self.sequence + [0x80], [0x68, 0xee] as [UInt8])
    _ = try Self.complete(cache, [sequence, picture, Self.key])
    #expect(cache.current?.revision == 2)
    #expect(cache.current?.sets == ParameterSets(sequence: sequence, picture: picture))
    _ = try Self.complete(cache, [Self.picture, Self.key])
    #expect(cache.current?.revision == 3)
    #expect(cache.current?.sets == ParameterSets(sequence: sequence, picture: Self.picture))
  }

  @Test func `a new peer gets them at once, a new stream not those of the old one`() throws {
    let cache = ParameterSetCache(codec: .h264)
    let sets = try #require(ParameterSets(sequence: Self.sequence, picture: Self.picture))
    cache.update(sets)
    #expect(try Self.complete(cache, [Self.delta]) == [Self.sequence, Self.picture, Self.delta])
    #expect(try Self.complete(cache, [Self.delta]) == [Self.delta])
    cache.invalidate()
    #expect(try Self.complete(cache, [Self.delta]) == [Self.sequence, Self.picture, Self.delta])
    #expect(try Self.complete(cache, [Self.delta]) == [Self.delta])
    cache.reset()
    #expect(!cache.isComplete)
    #expect(try Self.complete(cache, [Self.key]) == [Self.key])
    let other: [UInt8] = [0x67, 77, 0, 31, 1]
    #expect(try Self.complete(cache, [other, Self.picture, Self.key]) == [other, Self.picture, Self.key])
    #expect(try Self.complete(cache, [Self.key]) == [other, Self.picture, Self.key])
  }

  @Test func `a set that is too long is refused and changes nothing`() throws {
    let cache = ParameterSetCache(codec: .h264)
    let long = [0x67] + [UInt8](repeating: 1, count: ParameterSets.lengthLimit)
    #expect(throws: ParameterSetError.self) { try Self.complete(cache, [Self.picture, long, Self.key]) }
    #expect(throws: ParameterSetError.self) {
      try Self.complete(cache, Array(repeating: Self.delta, count: AccessUnit.nalUnitLimit - 1))
    }
    #expect(cache.changes == 0 && !cache.isComplete)
  }

  @Test func `a stream whose sets came once decodes from every key frame`() throws {
    let sample = try EncodedSample(frames: 30, ["-pix_fmt", "yuv420p", "-x264-params", "keyint=10:scenecut=0:aud=1"])
    let cache = ParameterSetCache(codec: .h264)
    // Access units begin at their delimiters; all sets but the first are taken out.
    var pictures: [[[UInt8]]] = []
    var seen: Set<UInt8> = []
    for unit in sample.nalUnits {
      let type = unit[0] & 0x1f
      if type == 9 { pictures.append([]) }
      if type == 7 || type == 8, !seen.insert(type).inserted { continue }
      pictures[pictures.count - 1].append(unit)
    }
    #expect(pictures.count == 30)
    var completed = try pictures.map { try Self.complete(cache, $0) }
    #expect(completed.filter { $0.contains { $0[0] & 0x1f == 7 } }.count == 3)
    completed.removeFirst(20)
    let tail = completed.flatMap { $0 }.flatMap { AnnexB.startCode + $0 }
    let probe = try StreamProbe(Data(tail))
    #expect(probe.complaints.isEmpty && probe.frames == 10, "\(probe)")
  }
}
