import Adaptors
import Media
import Platform
import TestSupport
import Testing

/// The adaptor from byte streams to access units.
@Suite struct AnnexBReaderTests {
  private static let size = PictureSize(width: 192, height: 112)

  private static func read(
    _ stream: [UInt8], chunks: [Int], limits: AnnexBReader.Limits = .init()
  ) -> (units: [EncodedPicture], reader: AnnexBReader) {
    var reader = AnnexBReader(limits: limits)
    var units: [EncodedPicture] = []
    var (position, turn) = (0, 0)
    while position < stream.count {
      let end = min(stream.count, position + chunks[turn % chunks.count])
      units += reader.append(stream[position..<end], timestamp: Instant(nanoseconds: Int64(position)))
      (position, turn) = (end, turn + 1)
    }
    if let last = reader.finish() { units.append(last) }
    return (units, reader)
  }

  @Test(arguments: clipVariants)
  func `access units are those that ffmpeg finds, in chunks of any size`(arguments: [String]) throws {
    let clip = try ClipStream(size: Self.size, frames: 12, arguments)
    let expected = try clip.packets()
    #expect(expected.count == 12)
    for chunks in [[clip.stream.count], [1], [2, 3], [7, 1, 500], [4096]] {
      let (units, reader) = Self.read(clip.stream, chunks: chunks)
      // Filler data are no part of ffmpeg's pictures, and may stand at either side of a boundary.
      func withoutFiller(_ units: [[UInt8]]) -> [[UInt8]] { units.filter { $0[0] & 0x1f != 12 } }
      #expect(units.map { withoutFiller(nalUnits($0.annexB)) } == expected.map(withoutFiller))
      #expect(units.flatMap { nalUnits($0.annexB) } == nalUnits(clip.stream))
      #expect(units.allSatisfy { !$0.isDamaged })
      #expect(units.map(\.isKeyFrame) == expected.map { $0.contains { $0[0] & 0x1f == 5 } })
      #expect(reader.counts.accessUnits == 12 && reader.counts.bytesSkipped == 0)
    }
  }

  @Test func `a picture has the time of the chunk with its first byte`() throws {
    let clip = try ClipStream(size: Self.size, frames: 5, ["-tune", "zerolatency"])
    var reader = AnnexBReader()
    var units: [EncodedPicture] = []
    for (index, packet) in try clip.packets().enumerated() {
      let bytes = packet.flatMap { AnnexB.startCode + $0 }
      for (half, part) in [bytes[..<(bytes.count / 2)], bytes[(bytes.count / 2)...]].enumerated() {
        units += reader.append(part, timestamp: Instant(nanoseconds: Int64(2 * index + half)))
      }
    }
    if let last = reader.finish() { units.append(last) }
    #expect(units.map(\.timestamp.nanoseconds) == [0, 2, 4, 6, 8])
  }

  @Test func `a chunk may end anywhere in a slice header without changing the picture's time`() throws {
    let clip = try ClipStream(size: Self.size, frames: 3, ["-tune", "zerolatency"])
    let packets = try clip.packets()
    for split in 1..<80 {
      var reader = AnnexBReader()
      var units = reader.append(packets[0].flatMap { AnnexB.startCode + $0 }, timestamp: Instant(nanoseconds: 1))
      let bytes = packets[1].flatMap { AnnexB.startCode + $0 }
      let rest = packets[2].flatMap { AnnexB.startCode + $0 }
      // The start code's last byte decides that there is another picture.
      units += reader.append(bytes.prefix(split), timestamp: Instant(nanoseconds: 2))
      units += reader.append(bytes.dropFirst(split) + rest, timestamp: Instant(nanoseconds: 3))
      if let last = reader.finish() { units.append(last) }
      #expect(units.map(\.timestamp.nanoseconds) == [1, split < 4 ? 3 : 2, 3], "split at \(split)")
      #expect(units.map { nalUnits($0.annexB) } == packets)
    }
  }

  @Test func `a large picture makes no later one large, and its memory is given back`() throws {
    let clip = try ClipStream(size: Self.size, frames: 4, ["-tune", "zerolatency"])
    let packets = try clip.packets()
    let large = packets[0] + [[6, 5] + [UInt8](repeating: 0x55, count: 4 << 20)]
    var reader = AnnexBReader()
    var units: [EncodedPicture] = []
    for packet in [large] + packets[1...] {
      units += reader.append(packet.flatMap { AnnexB.startCode + $0 })
      if let unit = reader.finish() { units.append(unit) }
    }
    #expect(units.count == 5 && units[1].annexB.count > 4 << 20)
    for unit in units where unit.annexB.count < 1 << 20 { #expect(unit.annexB.capacity < 2 * unit.annexB.count + 64) }
    #expect(reader.memoryBytes < 1 << 20)
    // The picture that was delivered is not written over.
    #expect((units.flatMap { nalUnits($0.annexB) } == large + packets[1...].flatMap(\.self)) as Bool)
  }

  @Test func `delimiters, SEI and ends of sequence and stream stay where they were`() throws {
    let clip = try ClipStream(size: Self.size, frames: 4, ["-x264-params", "aud=1:keyint=2:slices=2"])
    var stream: [UInt8] = []
    var expected: [[[UInt8]]] = []
    for (index, packet) in try clip.packets().enumerated() {
      // An end of sequence is followed by an IDR picture; the stream's end is the last.
      var packet = packet
      if index == 1 { packet.append([10]) }
      if index == 3 { packet += [[10], [11]] }
      expected.append(packet)
      for (place, unit) in packet.enumerated() { stream += (place % 2 == 0 ? [0, 0, 0, 1] : [0, 0, 1]) + unit }
    }
    // The end of a stream ends its last picture without another call; another stream may follow.
    var reader = AnnexBReader()
    var units = reader.append(stream + [0, 0, 1])
    #expect(units.map { nalUnits($0.annexB) } == expected)
    #expect(reader.finish() == nil)
    units = reader.append(stream + [0, 0, 0, 1])
    #expect(units.map { nalUnits($0.annexB) } == expected)
  }

  @Test func `a caller who knows the end of a picture has it at once`() throws {
    let clip = try ClipStream(size: Self.size, frames: 3, ["-tune", "zerolatency"])
    var reader = AnnexBReader()
    for packet in try clip.packets() {
      #expect(reader.append(packet.flatMap { [0, 0, 1] + $0 }).isEmpty)
      let unit = reader.finish()
      #expect(unit.map { nalUnits($0.annexB) } == packet)
    }
  }

  @Test func `what exceeds the limits is left out, and marks its own picture only`() throws {
    let clip = try ClipStream(size: Self.size, frames: 6, ["-tune", "zerolatency"])
    let packets = try clip.packets()
    var stream: [UInt8] = []
    for (index, packet) in packets.enumerated() {
      for unit in packet { stream += [0, 0, 0, 1] + unit }
      // The third picture has a second slice of ten megabytes.
      if index == 2 { stream += [UInt8](repeating: 0x55, count: 10 << 20) }
    }
    for chunks in [[stream.count], [100_000], [777]] {
      let (units, reader) = Self.read(stream, chunks: chunks, limits: .init(unitBytes: 256 << 10))
      #expect(units.map(\.isDamaged) == [false, false, true, false, false, false])
      #expect(reader.memoryBytes < 1 << 20)
      #expect(reader.counts.nalUnitsRefused == 1)
      for index in [0, 1, 3, 4, 5] { #expect(nalUnits(units[index].annexB) == packets[index]) }
    }
    let many = (0..<5000).flatMap { _ in [0, 0, 1, 6, 5] as [UInt8] }
    let (units, reader) = Self.read(many, chunks: [64])
    #expect(units.count == 1 && units[0].isDamaged && reader.counts.nalUnitsRefused == 5000 - 1024)
  }

  @Test func `zeros without end, and bytes before the first start code, take no memory`() {
    var reader = AnnexBReader(limits: .init(unitBytes: 4096))
    #expect(reader.append([0, 0, 2, 9, 9, 0, 0, 0, 1, 0x65, 0x88]).isEmpty)
    #expect(reader.counts.bytesSkipped == 5)
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    for _ in 0..<64 { #expect(reader.append(zeros).isEmpty) }
    #expect(reader.append([7]).isEmpty)
    #expect(reader.memoryBytes < 16_384)
    let last = reader.finish()
    #expect(last?.isDamaged == true)
  }

  @Test func `any bytes are accepted, and come out whole`() {
    var random = SeededGenerator(seed: 25)
    for round in 0..<300 {
      // Few values, so that start codes and headers are frequent.
      let values: [UInt8] = [0, 0, 0, 1, 1, 3, 5, 6, 7, 8, 9, 10, 11, 0x41, 0x65, 0x67, 0x68, 0x80, 0xff]
      let count = Int.random(in: 0...400, using: &random)
      let stream = (0..<count).compactMap { _ in values.randomElement(using: &random) }
      let expected = nalUnits(stream)
      let (units, reader) = Self.read(stream, chunks: [1 + round % 9])
      #expect(units.flatMap { nalUnits($0.annexB) } == expected)
      #expect(Int(reader.counts.accessUnits) == units.count)
    }
  }
}
