import Glibc
import Media

/// What `command` writes to its standard output; it must succeed.
func output(of command: String) throws -> [UInt8] {
  guard let pipe = popen(command, "re") else { throw SystemFailure("popen") }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = fread(&buffer, 1, buffer.count, pipe)
    if count == 0 { break }
    bytes += buffer[..<count]
  }
  guard pclose(pipe) == 0 else { throw SystemFailure(command, errorNumber: ECHILD) }
  return bytes
}

/// A folder with one clip in it, which goes when this value does.
final class Clip {
  let folder: String
  var path: String { "\(folder)/clip.y4m" }

  init() throws {
    var template = Array("/tmp/nightjar-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemFailure("mkdtemp") }
    folder = String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }

  /// A clip of `bytes`.
  convenience init(_ bytes: some Sequence<UInt8>) throws {
    try self.init()
    try write(bytes)
  }

  func write(_ bytes: some Sequence<UInt8>) throws {
    let bytes = Array(bytes)
    guard let stream = fopen(path, "we") else { throw SystemFailure("fopen") }
    defer { fclose(stream) }
    guard fwrite(bytes, 1, bytes.count, stream) == bytes.count else { throw SystemFailure("fwrite") }
  }

  deinit {
    _ = system("rm -r \(folder)")
  }
}

/// ffmpeg's moving test pattern as a y4m clip.
func testClip(_ size: PictureSize, _ pixelFormat: String, frames: Int, rate: String = "30") throws -> [UInt8] {
  try output(
    of: """
      ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=\(size):rate=\(rate) -frames:v \(frames) \
      -pix_fmt \(pixelFormat) -strict -1 -f yuv4mpegpipe -
      """)
}

/// The picture without padding: luma and chroma.
func packed(_ planes: NV12Planes) -> (luma: [UInt8], chroma: [UInt8]) {
  let size = planes.size
  let luma = (0..<size.height).flatMap {
    Array(UnsafeBufferPointer(start: planes.luma + $0 * planes.lumaStride, count: size.width))
  }
  let chroma = (0..<size.height / 2).flatMap {
    Array(UnsafeBufferPointer(start: planes.chroma + $0 * planes.chromaStride, count: size.width))
  }
  return (luma, chroma)
}
