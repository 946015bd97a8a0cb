import Foundation
import Media
import Platform
import RTP
import TestSupport
import Testing

/// Our bytes, as ffmpeg and ffprobe read them.
@Suite struct PlayerTests {
  /// A program run to its end.
  static func run(_ arguments: [String]) throws -> (output: Data, errors: String) {
    let result = try Subprocess.run(arguments, in: try TemporaryDirectory())
    guard result.status == 0 else { throw ProgramFailure(arguments: arguments, errors: result.error) }
    return (result.output, result.error)
  }

  struct ProgramFailure: Error {
    var arguments: [String]
    var errors: String
  }

  /// A file with `bytes` while `body` runs.
  static func withFile<Result>(
    _ bytes: [UInt8], _ suffix: String, _ body: (String) throws -> Result
  ) throws -> Result {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).\(suffix)")
    try Data(bytes).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    return try body(file.path)
  }

  /// Access units as x264 makes them: 50 frames, three slices each, delimiters, a key frame every 12.
  static func encodedUnits() throws -> [[[UInt8]]] {
    let stream = try run([
      "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", "50",
      "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "12",
      "-x264-params", "aud=1:slices=3:scenecut=0", "-pix_fmt", "yuv420p", "-f", "h264", "-",
    ]).output
    var units: [[[UInt8]]] = []
    [UInt8](stream).withUnsafeBytes { bytes in
      AnnexB.forEachNALUnit(in: bytes) { nal in
        if nal.type == .accessUnitDelimiter || units.isEmpty { units.append([]) }
        units[units.count - 1].append(Array(nal.bytes))
      }
    }
    return units
  }

  static func isKeyFrame(_ unit: [[UInt8]]) -> Bool { unit.contains { $0[0] & 31 == 5 } }

  @Test(arguments: [1200, 200, 1500])
  func `ffmpeg reads the transport stream without a complaint`(packetSize: Int) throws {
    let units = try Self.encodedUnits()
    #expect(units.count == 50)
    var packetizer = try TransportStreamPacketizer(maximumPacketSize: packetSize)
    let batch = PacketBatch()
    for (index, unit) in units.enumerated() {
      withAccessUnit(unit, isKeyFrame: Self.isKeyFrame(unit), at: 10_000_000_000 + Int64(index) * 40_000_000) {
        packetizer.packetize($0, into: batch)
      }
    }
    let stream = batch.packets.flatMap { $0.dropFirst(12) }
    let reader = TransportStreamReader(stream)
    #expect(reader.faults.isEmpty)
    try Self.withFile(stream, "ts") { path in
      let decoded = try Self.run([
        "ffmpeg", "-v", "warning", "-copyts", "-i", path, "-f", "framecrc", "-c:v", "rawvideo", "-fps_mode",
        "passthrough", "-",
      ])
      #expect(decoded.errors == "")
      let probed = try Self.run([
        "ffprobe", "-v", "warning", "-show_entries", "packet=pts,flags", "-of", "csv=p=0", path,
      ])
      #expect(probed.errors == "")
      let lines = String(decoding: probed.output, as: UTF8.self).split(separator: "\n").map {
        // ffprobe ends some lines with an empty field.
        $0.split(separator: ",").joined(separator: ",")
      }
      let expected = units.enumerated().map { index, unit in
        "\(900_000 + index * 3600 + 4500),\(Self.isKeyFrame(unit) ? "K_" : "__")"
      }
      #expect(lines == expected)
      // Every picture decodes to the very bytes that the encoder's own stream decodes to.
      let pictures = Self.checksums(decoded.output)
      let original = try Self.withFile(Self.annexB(units), "h264") { file in
        try Self.run([
          "ffmpeg", "-v", "error", "-i", file, "-f", "framecrc", "-c:v", "rawvideo", "-fps_mode", "passthrough", "-",
        ])
      }
      #expect(pictures.count == 50)
      #expect(pictures == Self.checksums(original.output))
    }
  }

  static func annexB(_ units: [[[UInt8]]]) -> [UInt8] {
    // Three bytes: of four, ffmpeg's SDP counts the first as the end of the parameter set before.
    units.flatMap { unit in unit.flatMap { [0, 0, 1] + $0 } }
  }

  static func checksums(_ framecrc: Data) -> [String] {
    String(decoding: framecrc, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
      $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }

  @Test func `ffmpeg reads a slow stream with clocks in between, across the wrap of the clock`() throws {
    let units = try Self.encodedUnits()
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    // Four frames a second; the 33 bits end at 95,443.7 s.
    for (index, unit) in units.enumerated() {
      let time = 95_440_000_000_000 + Int64(index) * 250_000_000
      withAccessUnit(unit, isKeyFrame: Self.isKeyFrame(unit), at: time) { muxer.mux($0, into: &arena) }
      muxer.clockPacket(at: Instant(nanoseconds: time + 90_000_000), into: &arena)
      muxer.clockPacket(at: Instant(nanoseconds: time + 180_000_000), into: &arena)
    }
    let stream = Array(arena.bytes)
    #expect(TransportStreamReader(stream).faults.isEmpty)
    try Self.withFile(stream, "ts") { path in
      let decoded = try Self.run([
        "ffmpeg", "-v", "warning", "-i", path, "-f", "framecrc", "-fps_mode", "passthrough", "-",
      ])
      #expect(decoded.errors == "")
      #expect(Self.checksums(decoded.output).count == 50)
    }
  }

  @Test func `our tables are those that ffmpeg writes for the same stream`() throws {
    let units = try Self.encodedUnits()
    let theirs = try Self.withFile(Self.annexB(units), "h264") { path in
      try Self.run(["ffmpeg", "-v", "error", "-i", path, "-c", "copy", "-f", "mpegts", "-"]).output
    }
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    withAccessUnit(units[0], isKeyFrame: true) { muxer.mux($0, into: &arena) }
    func table(_ stream: [UInt8], _ pid: Int) -> [UInt8]? {
      stride(from: 0, to: stream.count - 187, by: 188).map { Array(stream[$0..<$0 + 188]) }
        .first { Int($0[1] & 31) << 8 | Int($0[2]) == pid }
    }
    for pid in [0, 0x1000] {
      let ours = try #require(table(Array(arena.bytes), pid))
      #expect(table([UInt8](theirs), pid) == ours)
    }
  }

  @Test func `the parameter sets of an encoder's stream are written as ffmpeg writes them`() throws {
    let units = try Self.encodedUnits()
    let sequence = try #require(units[0].first { $0[0] & 31 == 7 })
    let picture = try #require(units[0].first { $0[0] & 31 == 8 })
    let sets = try #require(ParameterSets(sequence: sequence, picture: picture))
    let ours = SessionDescription(payload: .h264(sets), address: .loopback, port: 5004, sessionID: 1).text
    let theirs = try Self.withFile(Self.annexB(units), "h264") { path in
      let description = path + ".sdp"
      defer { try? FileManager.default.removeItem(atPath: description) }
      // Port 9 is the discard port: only the description is of interest.
      _ = try Self.run([
        "ffmpeg", "-v", "error", "-i", path, "-map", "0", "-c", "copy", "-frames:v", "1", "-f", "rtp", "-sdp_file",
        description, "rtp://127.0.0.1:9",
      ])
      return try String(contentsOfFile: description, encoding: .utf8)
    }
    let property = try #require(
      ours.split(separator: ";").first { $0.hasPrefix("sprop-parameter-sets=") }?.split(separator: "\r\n").first)
    let decoded = property.dropFirst("sprop-parameter-sets=".count).split(separator: ",").map {
      Data(base64Encoded: String($0)).map([UInt8].init)
    }
    #expect(decoded == [sets.sequence, sets.picture])
    #expect(theirs.contains("packetization-mode=1"))
    #expect(theirs.contains(property), "\(theirs)")
    #expect(theirs.contains("profile-level-id=\(sets.profileLevelID)"))
  }
}
