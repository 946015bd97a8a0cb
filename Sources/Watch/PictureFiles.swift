import Glibc
import Media
import Platform

/// A PNG file (ISO/IEC 15948) of one picture: 8-bit RGB, not compressed.
enum PNG {
  /// Returns the file of a picture; its colours by the matrix and range of `color`.
  static func bytes(_ planes: NV12Planes, _ color: ColorDescription) -> [UInt8] {
    let (width, height) = (planes.size.width, planes.size.height)
    var file: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    append("IHDR", bigEndian(UInt32(width)) + bigEndian(UInt32(height)) + [8, 2, 0, 0, 0], to: &file)
    append("IDAT", stored(rows(planes, RGBConversion(color))), to: &file)
    append("IEND", [], to: &file)
    return file
  }

  /// The rows of RGB, each behind its filter type, 0.
  private static func rows(_ planes: NV12Planes, _ conversion: RGBConversion) -> [UInt8] {
    let (width, height) = (planes.size.width, planes.size.height)
    return [UInt8](unsafeUninitializedCapacity: (3 * width + 1) * height) { memory, count in
      for row in 0..<height {
        memory[count] = 0
        count += 1
        let luma = planes.luma + row * planes.lumaStride
        let chroma = planes.chroma + row / 2 * planes.chromaStride
        for column in 0..<width {
          let pair = column & ~1
          let (red, green, blue) = conversion.samples(luma[column], chroma[pair], chroma[pair + 1])
          (memory[count], memory[count + 1], memory[count + 2]) = (red, green, blue)
          count += 3
        }
      }
    }
  }

  /// Data in stored blocks of deflate (RFC 1951 section 3.2.4) within zlib's format (RFC 1950).
  private static func stored(_ data: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = [0x78, 0x01]
    bytes.reserveCapacity(data.count + data.count / 65_535 * 5 + 16)
    var position = 0
    repeat {
      let count = min(65_535, data.count - position)
      let isLast = position + count == data.count
      bytes += [
        isLast ? 1 : 0, UInt8(count & 0xff), UInt8(count >> 8), UInt8(~count & 0xff), UInt8(~count >> 8 & 0xff),
      ]
      bytes += data[position..<(position + count)]
      position += count
    } while position < data.count
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in data {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    return bytes + bigEndian(high << 16 | low)
  }

  private static func append(_ type: String, _ data: [UInt8], to file: inout [UInt8]) {
    let content = Array(type.utf8) + data
    file += bigEndian(UInt32(data.count)) + content
    var remainder: UInt32 = .max
    for byte in content { remainder = table[Int((remainder ^ UInt32(byte)) & 0xff)] ^ remainder >> 8 }
    file += bigEndian(~remainder)
  }

  /// The remainders of CRC-32 for each byte (ISO/IEC 15948 annex D).
  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ value >> 1 : value >> 1 }
  }

  private static func bigEndian(_ value: UInt32) -> [UInt8] {
    [UInt8(value >> 24), UInt8(value >> 16 & 0xff), UInt8(value >> 8 & 0xff), UInt8(value & 0xff)]
  }
}

/// The conversion of Y'CbCr to RGB by the equations of ITU-T H.273 clause 8.3.
struct RGBConversion {
  private let (red, blue): (Double, Double)
  private let (lumaOffset, lumaScale, chromaScale): (Double, Double, Double)

  /// Creates the conversion; pictures without a description have the matrix of BT.601.
  init(_ color: ColorDescription) {
    (red, blue) =
      switch color.matrix {
      case 1: (0.2126, 0.0722)
      case 7: (0.212, 0.087)
      case 9, 10: (0.2627, 0.0593)
      default: (0.299, 0.114)
      }
    (lumaOffset, lumaScale, chromaScale) = color.isFullRange ? (0, 1, 1) : (16, 255 / 219.0, 255 / 224.0)
  }

  /// Returns the samples of a pixel.
  func samples(_ luma: UInt8, _ cb: UInt8, _ cr: UInt8) -> (red: UInt8, green: UInt8, blue: UInt8) {
    let y = (Double(luma) - lumaOffset) * lumaScale
    let (pb, pr) = ((Double(cb) - 128) * chromaScale, (Double(cr) - 128) * chromaScale)
    let first = y + 2 * (1 - red) * pr
    let third = y + 2 * (1 - blue) * pb
    let second = (y - red * first - blue * third) / (1 - red - blue)
    func byte(_ value: Double) -> UInt8 { UInt8(max(0, min(255, value.rounded()))) }
    return (byte(first), byte(second), byte(third))
  }
}

/// A y4m file of all pictures of one size, as ffmpeg and x264 read it.
struct Y4MWriter: ~Copyable {
  private let file: FileDescriptor
  private let path: String
  private var size: PictureSize?
  private var memory: [UInt8] = []

  /// Creates the file, in place of one that is there.
  ///
  /// - Throws: `WatchError.writing`.
  init(_ path: String) throws(WatchError) {
    self.path = path
    do throws(SystemFailure) {
      file = try FileDescriptor(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644)
    } catch {
      throw .writing(path, error)
    }
  }

  /// Writes a picture. Those of another size than the first are left out: the format has one.
  ///
  /// - Throws: `WatchError.writing`.
  mutating func write(_ planes: NV12Planes, _ frameRate: FrameRate) throws(WatchError) {
    memory.removeAll(keepingCapacity: true)
    if size == nil {
      size = planes.size
      memory += Array(
        "YUV4MPEG2 W\(planes.size.width) H\(planes.size.height) F\(frameRate.numerator):\(frameRate.denominator) Ip A1:1 C420jpeg\n"
          .utf8)
    }
    guard planes.size == size else { return }
    memory += Array("FRAME\n".utf8)
    for row in 0..<planes.size.height {
      memory += UnsafeBufferPointer(start: planes.luma + row * planes.lumaStride, count: planes.size.width)
    }
    for part in 0...1 {
      for row in 0..<planes.size.height / 2 {
        let pairs = planes.chroma + row * planes.chromaStride + part
        for column in 0..<planes.size.width / 2 { memory.append(pairs[2 * column]) }
      }
    }
    do throws(SystemFailure) {
      try FileDescriptor.write(memory.span.bytes, to: file.number)
    } catch {
      throw .writing(path, error)
    }
  }
}

/// Writes `bytes` to a new file, in place of one that is there.
///
/// - Throws: `WatchError.writing`.
func write(_ bytes: [UInt8], to path: String) throws(WatchError) {
  do throws(SystemFailure) {
    let file = try FileDescriptor(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644)
    try FileDescriptor.write(bytes.span.bytes, to: file.number)
    try file.close()
  } catch {
    throw .writing(path, error)
  }
}
