import Foundation
import Media
import Platform
import TestSupport
import Testing

@Suite struct NALUnitFormatTests {
  static let variants: [[String]] = [
    ["-profile:v", "baseline", "-pix_fmt", "yuv420p"], ["-profile:v", "main", "-pix_fmt", "yuv420p"],
    ["-profile:v", "high", "-pix_fmt", "yuv420p", "-x264-params", "slices=4:keyint=5"],
    ["-profile:v", "high10", "-pix_fmt", "yuv420p10le"], ["-profile:v", "high422", "-pix_fmt", "yuv422p"],
    ["-profile:v", "high444", "-pix_fmt", "yuv444p", "-x264-params", "cqm=jvt"],
  ]

  @Test(arguments: variants)
  func `both ways it is what ffmpeg makes of the stream`(arguments: [String]) throws {
    let sample = try EncodedSample(arguments)
    let lengths = try sample.stream.withUnsafeBytes { bytes throws in try AVCC.bytes(fromAnnexB: bytes) }
    #expect(Data(lengths) == sample.samples)
    let stream = try sample.samples.withUnsafeBytes { bytes throws in try AnnexB.bytes(fromAVCC: bytes) }
    // ffmpeg's stream has start codes of three bytes here and there; its NAL units are the same.
    var units: [[UInt8]] = []
    stream.withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
    #expect(units == sample.nalUnits)
    #expect(stream.count == lengths.count)
  }

  @Test func `NAL units are found wherever zeros and ones stand`() {
    // Every stream of up to nine bytes that are 0, 1 or 2, cut by the letter of clause B.1: a search that steps over
    // bytes is easily wrong about the last ones, or about zeros in a row.
    for length in 0...9 {
      var stream = [UInt8](repeating: 0, count: length)
      while true {
        var units: [[UInt8]] = []
        stream.withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
        guard units == Self.units(in: stream) else {
          Issue.record("\(stream): \(units)")
          return
        }
        guard let digit = stream.lastIndex(where: { $0 < 2 }) else { break }
        stream[digit] += 1
        for index in stream.indices where index > digit { stream[index] = 0 }
      }
    }
  }

  /// The same the slow way: what stands between one `00 00 01` and the next, without the zeros at its end.
  private static func units(in stream: [UInt8]) -> [[UInt8]] {
    var codes: [Int] = []
    var index = 0
    while index + 3 <= stream.count {
      guard Array(stream[index..<index + 3]) == [0, 0, 1] else {
        index += 1
        continue
      }
      codes.append(index)
      index += 3
    }
    return codes.enumerated().compactMap { number, code in
      let end = number + 1 < codes.count ? codes[number + 1] : stream.count
      var unit = Array(stream[(code + 3)..<end])
      while unit.last == 0 { unit.removeLast() }
      return unit.isEmpty ? nil : unit
    }
  }

  @Test(arguments: variants)
  func `the decoder configuration is the one that ffmpeg writes`(arguments: [String]) throws {
    let sample = try EncodedSample(arguments)
    let sets = try #require(ParameterSets(sequence: sample.first(7), picture: sample.first(8)))
    let configuration = try DecoderConfiguration(sets)
    #expect(configuration.bytes == sample.record)
    let parsed = try sample.record.withUnsafeBytes { bytes throws in try DecoderConfiguration(parsing: bytes) }
    #expect(parsed == configuration)
    #expect(parsed.parameterSets == sets)
    #expect(parsed.lengthSize == 4)
    for length in 0..<sample.record.count - 4 {
      #expect(throws: DecoderConfigurationError.self) {
        try sample.record[..<length].withUnsafeBytes { bytes throws in _ = try DecoderConfiguration(parsing: bytes) }
      }
    }
    for bit in 0..<sample.record.count * 8 {
      var damaged = sample.record
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      _ = try? damaged.withUnsafeBytes { bytes throws in try DecoderConfiguration(parsing: bytes) }
    }
  }

  @Test func `an access unit goes into memory that is there, or not at all`() throws {
    let units: [[UInt8]] = [[0x67, 1, 2], [0x68, 3], [0x65, 0, 0, 3, 1]]
    let expected: [UInt8] = [0, 0, 0, 3, 0x67, 1, 2, 0, 0, 0, 2, 0x68, 3, 0, 0, 0, 5, 0x65, 0, 0, 3, 1]
    try withNALUnits(units) { pointer throws in
      let unit = AccessUnit(nalUnits: pointer, isKeyFrame: true, timestamp: .zero, captured: .zero)
      #expect(AVCC.byteCount(of: unit) == 22)
      var memory = [UInt8](repeating: 0xee, count: 24)
      let count = try memory.withUnsafeMutableBytes { bytes throws in try AVCC.write(unit, into: bytes) }
      #expect(count == 22 && memory == expected + [0xee, 0xee])
      var short = [UInt8](repeating: 0xee, count: 21)
      do {
        _ = try short.withUnsafeMutableBytes { bytes throws in try AVCC.write(unit, into: bytes) }
        Issue.record("it does not fit")
      } catch let error as NALUnitFormatError {
        #expect("\(error)" == "22 bytes of NAL units for a memory of 21")
      }
      #expect(short.allSatisfy { $0 == 0xee })
    }
  }

  @Test(
    arguments: [
      ([UInt8](), 4, 0), ([0, 0, 0, 1, 0x65], 4, 1), ([0, 2, 0x65, 1, 0, 1, 0x41], 2, 2), ([1, 0x65], 1, 1),
      ([0, 0, 0], 4, nil), ([0, 0, 0, 0], 4, nil), ([0, 0, 0, 2, 0x65], 4, nil), ([255, 255, 255, 255, 0x65], 4, nil),
      ([0, 0, 1, 0x65], 3, nil), ([1, 0x65], 0, nil), ([0, 0, 0, 1, 0x65, 0], 4, nil),
    ] as [([UInt8], Int, Int?)])
  func `lengths of all sizes are read, and none leads out of the data`(bytes: [UInt8], size: Int, count: Int?) {
    var found = 0
    do {
      try bytes.withUnsafeBytes { bytes throws in
        try AVCC.forEachNALUnit(in: bytes, lengthSize: size) { _ in found += 1 }
      }
      #expect(found == count)
    } catch {
      #expect(count == nil, "\(error)")
    }
  }

  @Test func `more than the limit is refused before memory is taken for it`() throws {
    let stream: [UInt8] = [0, 0, 1, 0x65] + Array(repeating: 1, count: 100)
    try stream.withUnsafeBytes { bytes throws in
      #expect(try AVCC.bytes(fromAnnexB: bytes, limit: 105).count == 105)
      #expect(throws: NALUnitFormatError.self) { try AVCC.bytes(fromAnnexB: bytes, limit: 104) }
    }
    let lengths: [UInt8] = [0, 0, 0, 2, 0x65, 1]
    try lengths.withUnsafeBytes { bytes throws in
      #expect(try AnnexB.bytes(fromAVCC: bytes, limit: 6) == [0, 0, 0, 1, 0x65, 1])
      #expect(throws: NALUnitFormatError.self) { try AnnexB.bytes(fromAVCC: bytes, limit: 5) }
    }
  }
}
