import Media
import Platform

extension Y4MHeader {
  /// The longest wait for the header of a clip in a pipe.
  private static let pipePatience = Duration.seconds(10)

  /// Reads the header at the beginning of `stream`, and no byte of the first frame.
  ///
  /// - Throws: ``Y4MError``.
  init(from stream: inout Y4MStream) throws(Y4MError) {
    // Byte by byte: bytes read from a pipe cannot be put back.
    var bytes: [UInt8] = []
    while bytes.count < Self.byteLimit, bytes.last != UInt8(ascii: "\n") {
      var byte: UInt8 = 0
      let outcome: Y4MStream.Outcome
      do throws(SystemFailure) {
        outcome = try stream.read(1, to: &byte, interrupt: -1, patience: Self.pipePatience)
      } catch {
        throw .read(frame: 1, offset: stream.offset, errorNumber: error.errorNumber)
      }
      if case .interrupted = outcome { throw .silentPipe(seconds: Int(Self.pipePatience.seconds)) }
      if case .end = outcome { break }
      bytes.append(byte)
    }
    try self.init(bytes.span)
  }
}

extension Y4MHeader.Chroma {
  /// The V4L2 code of the planes in the file.
  var pixelFormat: PixelFormat {
    let code =
      switch self {
      case .yuv420: "YU12"
      case .yuv422: "422P"
      case .yuv444: "YM24"
      case .yuv411: "411P"
      case .mono: "GREY"
      }
    return PixelFormat(code) ?? .yu12
  }
}
