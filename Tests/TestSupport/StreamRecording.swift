package import Foundation
package import Media
import RTP
import Testing

/// A recorded RTP stream of H.264 or HEVC, as ffmpeg decodes it.
package struct StreamRecording {
  /// The size of each picture that ffmpeg decodes, in order: `640x360`.
  package let pictures: [String]
  /// The MD5 of each picture that ffmpeg decodes, in order.
  package let checksums: [String]

  /// The MD5 of each picture that ffmpeg decodes of the stream with start codes at `path`, in order, whatever it
  /// complains of. One thread decodes: what comes of a damaged stream does not depend on the number of processors.
  package static func checksums(of path: String, in directory: TemporaryDirectory) throws -> [String] {
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-threads", "1", "-i", path, "-fps_mode", "passthrough", "-f", "framemd5",
        "-",
      ], in: directory)
    return result.outputText.split(separator: "\n").filter { !$0.hasPrefix("#") }
      .compactMap { $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) } }
  }

  /// The MD5 of each picture that ffmpeg decodes of a stream with start codes, in order, whatever it complains of.
  package static func checksums(of stream: Data, codec: VideoCodec = .h264) throws -> [String] {
    let directory = try TemporaryDirectory()
    let path = directory.url.appending(path: fileName(for: codec))
    try stream.write(to: path)
    return try checksums(of: path.path, in: directory)
  }

  /// The name by which ffmpeg knows what a file has.
  private static func fileName(for codec: VideoCodec) -> String { codec == .hevc ? "s.h265" : "s.h264" }

  /// Of `packets`, which must be one stream without a gap, of which ffmpeg has nothing to complain about.
  package init(_ packets: [Data], codec: VideoCodec = .h264) throws {
    var h264 = H264Depacketizer()
    var hevc = HEVCDepacketizer()
    var stream = Data()
    var last: (sequence: UInt16, timestamp: UInt32, source: UInt32)?
    for packet in packets {
      try packet.withUnsafeBytes { bytes in
        let header = try RTPPacket(parsing: bytes).header
        if let last {
          #expect(header.sequenceNumber == last.sequence &+ 1)
          #expect(header.ssrc == last.source)
          #expect(header.timestamp &- last.timestamp < 1 << 31, "time goes back")
        }
        last = (header.sequenceNumber, header.timestamp, header.ssrc)
        func take(_ unit: borrowing ReceivedAccessUnit) {
          let isDamaged = unit.isDamaged
          #expect(!isDamaged)
          stream.append(contentsOf: unit.annexB)
        }
        switch codec {
        case .h264: try h264.receive(bytes, deliver: take)
        case .hevc: try hevc.receive(bytes, deliver: take)
        }
      }
    }
    let directory = try TemporaryDirectory()
    let path = directory.url.appending(path: Self.fileName(for: codec))
    try stream.write(to: path)
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-err_detect", "explode", "-show_entries", "frame=width,height", "-of",
        "csv=p=0:s=x", path.path,
      ], in: directory)
    #expect(probe.error.isEmpty, "\(probe.error)")
    checksums = try Self.checksums(of: path.path, in: directory)
    pictures = probe.outputText.split(separator: "\n").map { String($0.prefix { $0.isNumber || $0 == "x" }) }
  }

  /// The sizes in turn, each once for a run of pictures.
  package var sizes: [String] {
    pictures.reduce(into: []) { sizes, size in if sizes.last != size { sizes.append(size) } }
  }
}
