/// YUYV pictures of one size, one after another in a file, as `ffmpeg -f rawvideo -pix_fmt yuyv422` writes them.
struct RawClip {
  let width: Int
  let height: Int
  let pictures: [ArraySlice<UInt8>]

  /// Reads what `WIDTHxHEIGHT:FILE` names.
  init(_ text: String) throws(CameraToolError) {
    let parts = text.split(separator: ":", maxSplits: 1)
    let size = parts[0].split(separator: "x").map { Int($0) ?? 0 }
    guard parts.count == 2, size.count == 2, size.allSatisfy({ (16...4096).contains($0) && $0.isMultiple(of: 2) })
    else { throw .usage }
    (width, height) = (size[0], size[1])
    let path = String(parts[1])
    let bytes = try ClipFile.read(path)
    let length = width * height * 2
    guard bytes.count.isMultiple(of: length) else { throw .notWhole(path: path, pictureBytes: length) }
    pictures = stride(from: 0, to: bytes.count, by: length).map { bytes[$0..<($0 + length)] }
  }
}
