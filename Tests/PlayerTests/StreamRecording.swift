import Foundation
import RTP
import TestSupport
import Testing

/// A recorded RTP stream of H.264, as ffmpeg decodes it.
struct StreamRecording {
  /// The size of each picture that ffmpeg decodes, in order: `640x360`.
  let pictures: [String]

  /// Of `packets`, which must be one stream without a gap, of which ffmpeg has nothing to complain about.
  init(_ packets: [Data]) throws {
    var depacketizer = H264Depacketizer()
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
        try depacketizer.receive(bytes) { unit in
          let isDamaged = unit.isDamaged
          #expect(!isDamaged)
          stream.append(contentsOf: unit.annexB)
        }
      }
    }
    let directory = try TemporaryDirectory()
    let path = directory.url.appending(path: "s.h264")
    try stream.write(to: path)
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-err_detect", "explode", "-show_entries", "frame=width,height", "-of",
        "csv=p=0:s=x", path.path,
      ], in: directory)
    #expect(probe.error.isEmpty, "\(probe.error)")
    pictures = probe.outputText.split(separator: "\n").map { String($0.prefix { $0.isNumber || $0 == "x" }) }
  }

  /// The sizes in turn, each once for a run of pictures.
  var sizes: [String] {
    pictures.reduce(into: []) { sizes, size in if sizes.last != size { sizes.append(size) } }
  }
}
