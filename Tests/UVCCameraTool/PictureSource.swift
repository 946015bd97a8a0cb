/// The damage to a JPEG.
enum JPEGDamage: String, CaseIterable {
  /// The second half is missing.
  case truncated
  /// It does not begin as a JPEG.
  case header
  /// Bits of the coded data are turned over.
  case bits
}

/// The pictures that the camera sees, by number.
///
/// Sixteen blocks across the upper eighteenth of the picture are the number's bits, black or white, the lowest one at
/// the left. They are drawn over YUYV pictures; JPEGs come with them from outside, where who makes them does the same.
final class PictureSource {
  let formats: [CameraFormat]
  private let clips: [JPEGClip]
  private let coded: [H264Clip]
  /// The next access unit of the H.264.
  private var next = 0
  /// The access unit that was drawn last, and for which picture; nil after a start.
  private var drawn: (number: Int, unit: Int)?
  private var awaitsKeyFrame = false
  /// Of YUYV, by the format's index.
  private var backgrounds: [Int: [ArraySlice<UInt8>]] = [:]
  private let memory: UnsafeMutableRawBufferPointer
  private var length = 0

  /// The picture that was drawn last; gone with the next one.
  var picture: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[0..<length]) }

  static let bitCount = 16

  /// - Parameter raws: The pictures in YUYV of their sizes; other sizes show a slope.
  init(clips: [JPEGClip], raws: [RawClip], coded: [H264Clip]) {
    self.clips = clips
    self.coded = coded
    let jpegs = clips.enumerated().map { index, clip in
      CameraFormat(coding: .mjpeg, index: index + 1, width: clip.width, height: clip.height)
    }
    let packed = [(640, 480), (1280, 720)].enumerated().map { index, size in
      CameraFormat(coding: .yuyv, index: index + 1, width: size.0, height: size.1)
    }
    formats =
      jpegs + packed
      + coded.enumerated().map { index, clip in
        CameraFormat(coding: .h264, index: index + 1, width: clip.width, height: clip.height)
      }
    for format in packed {
      let clip = raws.first { $0.width == format.width && $0.height == format.height }
      backgrounds[format.index] = clip?.pictures ?? [Self.background(format)[...]]
    }
    let longest = (clips.flatMap(\.pictures) + coded.flatMap(\.units)).map(\.count) + packed.map(\.byteLimit)
    memory = .allocate(byteCount: longest.max() ?? 0, alignment: 16)
  }

  deinit { memory.deallocate() }

  /// Begins the H.264 anew, as an encoder does when a stream starts.
  func restart() { (next, awaitsKeyFrame, drawn) = (0, false, nil) }

  /// Makes the next access unit of the H.264 a key frame.
  func requestKeyFrame() { awaitsKeyFrame = true }

  /// Makes picture `number` the one in ``picture``. Of H.264 it is the next access unit, or
  /// the same one for the same number.
  ///
  /// - Returns: The picture's number in its clip.
  func draw(_ number: Int, of format: CameraFormat, damage: JPEGDamage?) -> Int {
    switch format.coding {
    case .h264:
      let clip = coded[format.index - 1]
      if drawn?.number != number {
        while awaitsKeyFrame, !clip.isKeyFrame[next] { next = (next + 1) % clip.units.count }
        awaitsKeyFrame = false
        drawn = (number, next)
        next = (next + 1) % clip.units.count
      }
      let unit = drawn?.unit ?? next
      clip.units[unit].withUnsafeBytes { fill($0) }
      return unit
    case .yuyv:
      guard let pictures = backgrounds[format.index] else { return number }
      pictures[number % pictures.count].withUnsafeBytes { fill($0) }
      drawNumber(number, of: format)
    case .mjpeg:
      let pictures = clips[format.index - 1].pictures
      pictures[number % pictures.count].withUnsafeBytes { fill($0) }
      if let damage { spoil(damage) }
    }
    return number
  }

  private func fill(_ bytes: UnsafeRawBufferPointer) {
    memory.copyMemory(from: bytes)
    length = bytes.count
  }

  private func spoil(_ damage: JPEGDamage) {
    switch damage {
    case .truncated: length /= 2
    case .header: (memory[0], memory[1]) = (0, 0)
    case .bits: for index in stride(from: length / 4, to: length - 2, by: 61) { memory[index] ^= 0x5a }
    }
  }

  /// Halves the picture.
  func shorten() { length /= 2 }

  private func drawNumber(_ number: Int, of format: CameraFormat) {
    let rowBytes = format.width * 2
    let blockBytes = rowBytes / Self.bitCount
    for bit in 0..<Self.bitCount {
      let luma: UInt8 = number >> bit & 1 == 1 ? 235 : 16
      for index in stride(from: bit * blockBytes, to: (bit + 1) * blockBytes, by: 2) {
        memory[index] = luma
        memory[index + 1] = 128
      }
    }
    let row = UnsafeRawBufferPointer(rebasing: memory[0..<rowBytes])
    for line in 1..<(format.height / 18) {
      UnsafeMutableRawBufferPointer(rebasing: memory[(line * rowBytes)...]).copyMemory(from: row)
    }
  }

  /// A slope of luma to the right, and colours that change downwards; grey where the number goes.
  private static func background(_ format: CameraFormat) -> [UInt8] {
    var bytes = [UInt8](repeating: 128, count: format.byteLimit)
    for y in (format.height / 18)..<format.height {
      for x in stride(from: 0, to: format.width, by: 2) {
        let position = (y * format.width + x) * 2
        let luma = UInt8(16 + x * 219 / format.width)
        bytes[position] = luma
        bytes[position + 1] = UInt8(64 + y * 128 / format.height)
        bytes[position + 2] = luma
        bytes[position + 3] = UInt8(192 - y * 128 / format.height)
      }
    }
    return bytes
  }
}
