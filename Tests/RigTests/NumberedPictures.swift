import Foundation
import TestSupport

/// Pictures that carry their number: sixteen blocks across the upper eighteenth are its bits, black or white, the
/// lowest one at the left.
enum NumberedPictures {
  /// The number of JPEGs of a size, 0 … 63, before they begin again.
  static let clipLength = 64

  /// The path of such JPEGs, made by ffmpeg; once, since the guest's own /run keeps them as long as it lives.
  static func clip(of size: String, in directory: TemporaryDirectory) throws -> String {
    let path = "/run/nightjar-\(size).mjpeg"
    if FileManager.default.fileExists(atPath: path) { return path }
    let unfinished = path + ".new"
    // The blocks are drawn small, one pixel each.
    let bits = "color=black:s=16x18:r=30,format=gray,geq=lum='if(mod(floor(N/pow(2\\,X))\\,2)\\,235\\,16)'"
    let enlarged = "scale=\(size.replacing("x", with: ":")):flags=neighbor,crop=iw:ih/18:0:0"
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", bits, "-f", "lavfi", "-i",
        "smptehdbars=s=\(size):r=30",
        "-filter_complex", "[0]\(enlarged)[n];[1][n]overlay=0:0:format=yuv420,format=yuvj420p", "-frames:v",
        "\(clipLength)", "-c:v", "mjpeg", "-q:v", "4", "-f", "mjpeg", "-y", unfinished,
      ], in: directory)
    guard result.status == 0 else { throw UVCCamera.Failed(text: result.error) }
    try FileManager.default.moveItem(atPath: unfinished, toPath: path)
    return path
  }

  /// The distances of pictures that follow one another: 1 where none is missing between them, negative where one
  /// comes after a later one. Where more than half a round may be missing at once, a picture that comes after a later one is
  /// nearly a round ahead instead, 0 where it comes twice.
  static func steps(_ numbers: [Int], modulo modulus: Int, mayLeap: Bool = false) -> [Int] {
    let back = mayLeap ? 0 : modulus / 2
    return zip(numbers.dropFirst(), numbers).map { ($0 - $1 + back + modulus) % modulus - back }
  }

  /// The numbers of the I420 pictures in the file at `url`.
  static func read(_ url: URL, width: Int, height: Int) throws -> [Int] {
    let file = try FileHandle(forReadingFrom: url)
    defer { try? file.close() }
    let pictureBytes = width * height * 3 / 2
    let count = Int(try file.seekToEnd()) / pictureBytes
    let middle = height / 36
    return try (0..<count).map { picture in
      try file.seek(toOffset: UInt64(picture * pictureBytes + middle * width))
      let row = [UInt8](try file.read(upToCount: width) ?? Data())
      guard row.count == width else { throw CocoaError(.fileReadCorruptFile) }
      return (0..<16).reduce(0) { $0 | (row[($1 * 2 + 1) * width / 32] > 128 ? 1 : 0) << $1 }
    }
  }
}
