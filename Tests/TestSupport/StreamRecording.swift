package import Foundation
package import Media

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
  static func fileName(for codec: VideoCodec) -> String { codec == .hevc ? "s.h265" : "s.h264" }

  /// The sizes in turn, each once for a run of pictures.
  package var sizes: [String] {
    pictures.reduce(into: []) { sizes, size in if sizes.last != size { sizes.append(size) } }
  }
}
