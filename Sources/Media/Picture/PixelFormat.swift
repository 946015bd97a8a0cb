/// A pixel format by its V4L2 four-character code (`V4L2_PIX_FMT_*`), such as `NV12`, `YUYV`, `MJPG`.
public struct PixelFormat: Hashable, Sendable, CustomStringConvertible {
  /// The kernel's code, with the first character in the lowest byte.
  public let fourCC: UInt32

  /// Creates the format of a kernel code.
  public init(fourCC: UInt32) {
    self.fourCC = fourCC
  }

  /// Creates the format of up to four printable ASCII characters, padded with spaces as in the kernel; nil otherwise.
  public init?(_ code: String) {
    let bytes = Array(code.utf8)
    guard (1...4).contains(bytes.count), bytes.allSatisfy({ (0x20...0x7e).contains($0) }) else { return nil }
    var value: UInt32 = 0
    for index in 0..<4 {
      value |= UInt32(index < bytes.count ? bytes[index] : 0x20) << UInt32(index * 8)
    }
    self.fourCC = value
  }

  private init(known code: StaticString) {
    var value: UInt32 = 0
    code.withUTF8Buffer { bytes in
      for (index, byte) in bytes.prefix(4).enumerated() { value |= UInt32(byte) << UInt32(index * 8) }
    }
    self.fourCC = value
  }

  /// 4:2:0, luma plane then interleaved Cb Cr: the encoders' input.
  public static let nv12 = PixelFormat(known: "NV12")
  /// ``nv12`` in two memory planes.
  public static let nm12 = PixelFormat(known: "NM12")
  /// 4:2:0, luma plane then interleaved Cr Cb.
  public static let nv21 = PixelFormat(known: "NV21")
  /// ``nv21`` in two memory planes.
  public static let nm21 = PixelFormat(known: "NM21")
  /// 4:2:0 planar: Y, Cb, Cr (I420).
  public static let yu12 = PixelFormat(known: "YU12")
  /// ``yu12`` in three memory planes.
  public static let ym12 = PixelFormat(known: "YM12")
  /// 4:2:0 planar: Y, Cr, Cb.
  public static let yv12 = PixelFormat(known: "YV12")
  /// ``yv12`` in three memory planes.
  public static let ym21 = PixelFormat(known: "YM21")
  /// 4:2:2 packed: Y Cb Y Cr.
  public static let yuyv = PixelFormat(known: "YUYV")
  /// 4:2:2 packed: Cb Y Cr Y.
  public static let uyvy = PixelFormat(known: "UYVY")
  /// Motion JPEG.
  public static let mjpeg = PixelFormat(known: "MJPG")
  /// JFIF JPEG.
  public static let jpeg = PixelFormat(known: "JPEG")
  /// H.264 with start codes.
  public static let h264 = PixelFormat(known: "H264")
  /// H.264 without start codes.
  public static let avc1 = PixelFormat(known: "AVC1")
  /// H.265.
  public static let hevc = PixelFormat(known: "HEVC")

  /// `true` if the camera compresses pictures in a way that only a video decoder can decode.
  public var isInterFrameCoded: Bool {
    [.h264, .avc1, .hevc, PixelFormat(known: "H263"), PixelFormat(known: "MPG4"), PixelFormat(known: "VP80")]
      .contains(self)
  }

  /// `true` if each picture is a JPEG.
  public var isJPEG: Bool { self == .mjpeg || self == .jpeg }

  /// The four characters without trailing spaces. A byte that cannot be printed becomes `?`, because a driver's text
  /// goes to a terminal.
  public var description: String {
    var text = ""
    for shift in stride(from: UInt32(0), to: 32, by: 8) {
      let byte = UInt8(truncatingIfNeeded: (fourCC >> shift) & 0x7f)
      text.unicodeScalars.append((0x20...0x7e).contains(byte) ? Unicode.Scalar(byte) : "?")
    }
    while text.last == " " { text.removeLast() }
    return (fourCC >> 31) == 1 ? text + "-BE" : text
  }
}
