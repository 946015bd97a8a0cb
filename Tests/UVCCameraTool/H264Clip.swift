/// An H.264 byte stream, as `ffmpeg -f h264` writes it, cut into access units (ITU-T H.264 clause 7.4.1.2.3).
struct H264Clip {
  let width: Int
  let height: Int
  let units: [ArraySlice<UInt8>]
  /// `true` for the access units that are IDR pictures.
  let isKeyFrame: [Bool]

  /// Reads what `WIDTHxHEIGHT:FILE` names.
  init(_ text: String) throws(CameraToolError) {
    let parts = text.split(separator: ":", maxSplits: 1)
    let size = parts[0].split(separator: "x").map { Int($0) ?? 0 }
    guard parts.count == 2, size.count == 2, size.allSatisfy({ (16...4096).contains($0) }) else { throw .usage }
    (width, height) = (size[0], size[1])
    let path = String(parts[1])
    let bytes = try ClipFile.read(path)
    var starts: [Int] = []
    var keys: [Bool] = []
    var hasSlice = true
    for position in Self.startCodes(in: bytes) {
      let header = position + (bytes[position + 2] == 1 ? 3 : 4)
      guard header + 1 < bytes.count else { break }
      let type = bytes[header] & 0x1f
      let isSlice = type == 1 || type == 5
      // first_mb_in_slice is 0 where its first bit is 1.
      let isFirst = isSlice ? bytes[header + 1] & 0x80 != 0 : (6...9).contains(type)
      if hasSlice, isFirst {
        starts.append(position)
        keys.append(false)
        hasSlice = false
      }
      if isSlice { hasSlice = true }
      if type == 5, !keys.isEmpty { keys[keys.count - 1] = true }
    }
    guard keys.first == true else { throw .notH264(path: path) }
    isKeyFrame = keys
    units = starts.indices.map { index in
      bytes[starts[index]..<(index + 1 < starts.count ? starts[index + 1] : bytes.count)]
    }
  }

  /// Where start codes begin, with the zero byte before a long one.
  private static func startCodes(in bytes: [UInt8]) -> [Int] {
    var positions: [Int] = []
    var index = 0
    while index + 3 < bytes.count {
      guard bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 else {
        index += 1
        continue
      }
      positions.append(index > 0 && bytes[index - 1] == 0 ? index - 1 : index)
      index += 3
    }
    return positions
  }
}
