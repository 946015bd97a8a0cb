/// JPEG pictures of one size, one after another in a file, as `ffmpeg -f mjpeg` writes them.
struct JPEGClip {
  let width: Int
  let height: Int
  let pictures: [ArraySlice<UInt8>]

  /// Reads the file at `path`.
  init(path: String) throws(CameraToolError) {
    let bytes = try ClipFile.read(path)
    var pictures: [ArraySlice<UInt8>] = []
    var sizes: Set<[Int]> = []
    var start = 0
    while start < bytes.count {
      guard let (end, size) = Self.picture(in: bytes, at: start) else { throw .notJPEG(path: path, offset: start) }
      pictures.append(bytes[start..<end])
      sizes.insert(size)
      start = end
    }
    guard let size = sizes.first, sizes.count == 1 else { throw .notOneSize(path: path) }
    width = size[0]
    height = size[1]
    self.pictures = pictures
  }

  /// Where the picture at `start` ends, and its width and height; nil where there is none.
  private static func picture(in bytes: [UInt8], at start: Int) -> (end: Int, size: [Int])? {
    guard bytes.count > start + 4, bytes[start] == 0xff, bytes[start + 1] == 0xd8 else { return nil }
    var size: [Int]?
    var position = start + 2
    while position + 4 <= bytes.count, bytes[position] == 0xff {
      let marker = bytes[position + 1]
      if marker == 0xd9 { return size.map { (position + 2, $0) } }
      let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
      // SOF0 and SOF1: precision, height, width.
      if marker == 0xc0 || marker == 0xc1, position + 9 <= bytes.count {
        let height = Int(bytes[position + 5]) << 8 | Int(bytes[position + 6])
        size = [Int(bytes[position + 7]) << 8 | Int(bytes[position + 8]), height]
      }
      position += 2 + length
      if marker == 0xda { position = endOfScan(in: bytes, from: position) }
      // The last marker of the file has no length behind it.
      if position + 2 == bytes.count, bytes[position] == 0xff, bytes[position + 1] == 0xd9 {
        return size.map { (position + 2, $0) }
      }
    }
    return nil
  }

  /// The next marker that is neither a stuffed byte nor a restart.
  private static func endOfScan(in bytes: [UInt8], from start: Int) -> Int {
    var position = start
    while position + 1 < bytes.count {
      let next = bytes[position + 1]
      if bytes[position] == 0xff, next != 0, next != 0xff, !(0xd0...0xd7).contains(next) { return position }
      position += 1
    }
    return bytes.count
  }
}
