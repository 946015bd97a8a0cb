import Foundation
import Media
import TestSupport
import Testing

/// Streams in which one VA-API encoder follows another, as after a rotation, and a receiver that has lost the new sets.
@Suite("VA-API parameter sets", .serialized)
struct ParameterSetIDTests {
  /// A stream, with the knobs of its driver.
  struct Stream: CustomTestStringConvertible, Sendable {
    var arguments: [String]
    var knobs: [String: String] = [:]

    var testDescription: String { arguments.joined(separator: " ") }

    /// Wide and tall, full and small, and of the sizes that one camera's pictures get under load.
    static let kinds = [
      Stream(arguments: ["--size", "640x360"]), Stream(arguments: ["--size", "360x640"]),
      Stream(arguments: ["--size", "320x180", "--small", "yes"]),
      Stream(arguments: ["--size", "180x320", "--small", "yes"]), Stream(arguments: ["--size", "960x540"]),
      Stream(arguments: ["--size", "1280x720"]), Stream(arguments: ["--size", "1920x1080"]),
    ]

    /// The wide sizes, the smallest first.
    static let ladder = ["640x360", "960x540", "1280x720", "1920x1080"]
  }

  private func encode(_ stream: Stream, _ codec: String) throws -> (driver: StrictDriver, bytes: [UInt8]) {
    let driver = try StrictDriver(codec: codec)
    let run = try driver.encode(["--rate-control", "24", "--frames", "5"] + stream.arguments, knobs: stream.knobs)
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    return (driver, [UInt8](try Data(contentsOf: URL(fileURLWithPath: driver.stream))))
  }

  /// The values of a field in all headers of the stream, by ffmpeg.
  private func values(of field: String, in driver: StrictDriver) throws -> Set<Int> {
    Set(try TracedHeaders(path: driver.stream, in: driver.directory).values(of: field))
  }

  /// The fields that name parameter sets: SPS first, PPS last.
  private static let fields = [
    "h264": ["seq_parameter_set_id", "pic_parameter_set_id"],
    "hevc": [
      "sps_seq_parameter_set_id", "vps_video_parameter_set_id", "sps_video_parameter_set_id",
      "pps_seq_parameter_set_id", "slice_pic_parameter_set_id", "pps_pic_parameter_set_id",
    ],
  ]

  @Test("have ids of their own for each shape, rendition and size", arguments: ["h264", "hevc"])
  func identifiers(codec: String) throws {
    var sequences: [String: Int] = [:]
    var pictures: Set<Int> = []
    for kind in Stream.kinds {
      let driver = try encode(kind, codec).driver
      let found = try (Self.fields[codec] ?? []).map { try values(of: $0, in: driver) }
      #expect(found.allSatisfy { $0.count == 1 }, "\(found)")
      let sequence = try #require(found.first?.first)
      let picture = try #require(found.last?.first)
      // Those of x264 and x265, which take over when hardware fails.
      #expect(codec == "h264" ? sequence > 26 : sequence > 0)
      #expect(pictures.insert(picture).inserted, "\(kind)")
      sequences[kind.arguments[1]] = sequence
      #expect(found[1...].dropLast(codec == "h264" ? 1 : 2).allSatisfy { $0 == [sequence] }, "\(found)")
    }
    // H.264 has 31 SPS ids, and x264 has 26 of them: only neighbours have others.
    let steps = Stream.ladder.compactMap { sequences[$0] }
    #expect(steps.count == Stream.ladder.count && !zip(steps, steps.dropFirst()).contains { $0 == $1 }, "\(sequences)")
  }

  @Test(
    "have the driver's ids where it writes sets or slice headers",
    arguments: pairs(["h264", "hevc"], ["none", "sequence"]))
  func driversOwn(codec: String, packed: String) throws {
    let stream = Stream(arguments: ["--size", "640x360"], knobs: ["PACKED": packed])
    let driver = try encode(stream, codec).driver
    for field in Self.fields[codec] ?? [] { #expect(try values(of: field, in: driver) == [0], "\(field)") }
    #expect(try driver.decodingErrors() == "")
  }

  /// The bytes of a stream without its parameter sets.
  private func withoutSets(_ stream: [UInt8], _ codec: VideoCodec) -> [UInt8] {
    var bytes: [UInt8] = []
    stream.withUnsafeBytes { stream in
      AnnexB.forEachNALUnit(in: stream) { unit in
        if case .parameterSet = codec.role(of: unit) { return }
        bytes += AnnexB.startCode + Array(unit.bytes)
      }
    }
    return bytes
  }

  @Test("that are lost leave a receiver without pictures, and not with wrong ones", arguments: ["h264", "hevc"])
  func losses(codec: String) throws {
    let kind = try #require(VideoCodec(rawValue: codec))
    let first = try encode(Stream.kinds[0], codec).bytes
    func decoded(_ stream: [UInt8]) throws -> [String] { try StreamRecording.checksums(of: Data(stream), codec: kind) }
    let alone = try decoded(first)
    #expect(alone.count == 5)
    for other in Stream.kinds.dropFirst() {
      let second = try encode(other, codec).bytes
      #expect(try decoded(first + withoutSets(second, kind)) == alone, "\(other)")
      #expect(try decoded(first + second).count == 10, "\(other)")
    }
  }
}
