/// The fields in the headers of a coded stream, as ffmpeg's filter `trace_headers` reads them.
package struct TracedHeaders: Sendable {
  /// The words of each line with a field, and the value at its end.
  private let fields: [(words: [Substring], value: Int)]

  /// Reads the stream in the file at `path`, of which ffmpeg knows the format by its name, or `frames` pictures of it.
  package init(path: String, frames: Int? = nil, in directory: TemporaryDirectory) throws {
    let limit = frames.map { ["-frames:v", "\($0)"] } ?? []
    let result = try Subprocess.run(
      ["ffmpeg", "-v", "verbose", "-nostdin", "-i", path, "-c", "copy"] + limit
        + ["-bsf:v", "trace_headers", "-f", "null", "-"], in: directory)
    fields = result.error.split(separator: "\n").compactMap { line -> (words: [Substring], value: Int)? in
      // As in "[trace_headers @ 0x55d0c8] 24  pic_parameter_set_id  010 = 1".
      let words = line.split(separator: " ")
      guard words.dropLast().last == "=", let value = words.last.flatMap({ Int($0) }) else { return nil }
      return (words: words, value: value)
    }
  }

  /// Returns the values of a field, such as `idr_pic_id`, in their order.
  package func values(of field: String) -> [Int] {
    fields.filter { $0.words.contains(Substring(field)) }.map(\.value)
  }
}
