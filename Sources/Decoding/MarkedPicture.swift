import CAVCodec

/// The memory of the picture that libavcodec decodes, with marks in it. A mark that is still there afterwards tells of a macroblock
/// that was not decoded. libavcodec itself tells of that with one thread and whole frames only.
struct MarkedPicture: ~Copyable {
  private let buffer: UnsafeMutablePointer<AVBufferRef>
  private let luma: UnsafeMutablePointer<UInt8>
  private let stride: Int
  private let (width, height): (Int, Int)

  /// Holds the memory of `frame`; nil for a surface of the driver, and where there is no memory.
  init?(_ frame: UnsafeMutablePointer<AVFrame>) {
    guard frame.pointee.hw_frames_ctx == nil, let luma = frame.pointee.data.0, let buffer = frame.pointee.buf.0,
      let reference = av_buffer_ref(buffer)
    else { return nil }
    (self.buffer, self.luma, stride) = (reference, luma, Int(frame.pointee.linesize.0))
    (width, height) = (Int(frame.pointee.width), Int(frame.pointee.height))
  }

  deinit {
    var buffer = Optional(buffer)
    av_buffer_unref(&buffer)
  }

  private func place(_ x: Int, _ y: Int) -> UnsafeMutableRawPointer? {
    guard x + SliceEnds.markWidth <= width, y < height else { return nil }
    return UnsafeMutableRawPointer(luma + y * stride + x)
  }

  /// Writes `mark` where `ends` will be decoded.
  borrowing func write(_ mark: UInt64, at ends: [SliceEnds]) {
    for picture in ends {
      picture.forEachRow { x, y in place(x, y)?.storeBytes(of: mark, as: UInt64.self) }
    }
  }

  /// Returns `true` if no row of `ends` has `mark` any more.
  borrowing func hasOverwritten(_ mark: UInt64, at ends: [SliceEnds]) -> Bool {
    var isWhole = true
    for picture in ends {
      picture.forEachRow { x, y in
        if place(x, y)?.loadUnaligned(as: UInt64.self) ?? mark == mark { isWhole = false }
      }
    }
    return isWhole
  }
}
