package import Foundation
package import Media
import RTP
import Testing

extension StreamRecording {
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
}
