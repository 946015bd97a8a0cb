package import Foundation

/// A stream as ffprobe sees it, all of it decoded.
package struct StreamProbe: Sendable {
  /// The video stream's entries by ffprobe's names; the pictures that it decodes are `nb_read_frames`.
  package let values: [String: String]
  /// The complaints of demuxer, parser and decoder; empty where all is well.
  package let complaints: String

  /// The number of pictures that it decodes; -1 where it does not say.
  package var frames: Int { values["nb_read_frames"].flatMap { Int($0) } ?? -1 }

  /// Probes the file at `path`.
  package init(path: String, in directory: TemporaryDirectory) throws {
    let result = try Subprocess.run(
      [
        "ffprobe", "-v", "warning", "-err_detect", "explode", "-count_frames", "-select_streams", "v", "-show_entries",
        "stream", "-of", "default=nw=1", path,
      ], in: directory)
    var values: [String: String] = [:]
    for line in result.outputText.split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
      if parts.count == 2 { values[parts[0]] = parts[1] }
    }
    self.values = values
    complaints = result.error
  }

  /// Probes `stream`, H.264 in Annex B.
  package init(_ stream: Data) throws {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("s.h264")
    try stream.write(to: file)
    try self.init(path: file.path, in: directory)
  }
}
