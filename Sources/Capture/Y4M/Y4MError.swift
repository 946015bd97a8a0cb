public import Media
public import Platform

/// A reason why a YUV4MPEG2 clip could not be opened or read. Frames are counted from 1, byte offsets from 0.
public enum Y4MError: Failure, Hashable {
  /// The file cannot be opened; with the `errno`.
  case open(path: String, errorNumber: CInt)
  /// The path names a folder, a device or a socket.
  case notAFile(path: String)
  /// A pipe cannot be played again from the beginning.
  case pipeCannotLoop(path: String)
  /// Nothing arrived in a pipe within that many seconds.
  case silentPipe(seconds: Int)
  /// The number of loops is below 1.
  case loops(Int)
  /// The file does not begin with `YUV4MPEG2`.
  case notY4M
  /// The header ends with a carriage return: the clip was transferred as a Windows text.
  case lineEnd
  /// The header does not end within the limit, or the file ends before it.
  case headerTooLong(limit: Int)
  /// A required field is missing.
  case missing(field: Character)
  /// A field occurs twice.
  case repeated(field: Character)
  /// The format does not allow the field's value.
  case malformed(field: Character, value: String)
  /// The format does not have the field.
  case unknownField(String)
  /// The size is odd, too small or too large.
  case size(PictureSize)
  /// The rate is outside the supported range.
  case rate(FrameRate)
  /// The clip is interlaced; with the header's letter.
  case interlaced(String)
  /// The samples have more than 8 bits.
  case highBitDepth(String)
  /// The chroma subsampling is not supported.
  case chroma(String)
  /// There is no frame after the header.
  case empty
  /// The file ends within a frame.
  case truncated(frame: Int, offset: Int64, missing: Int)
  /// Something other than `FRAME` stands where a frame should begin.
  case marker(frame: Int, offset: Int64)
  /// A frame's header does not end within the limit.
  case frameHeaderTooLong(frame: Int, offset: Int64, limit: Int)
  /// Reading failed; with the `errno`.
  case read(frame: Int, offset: Int64, errorNumber: CInt)
  /// The number of frames to reserve memory for is out of range.
  case capacity(Int)
  /// The system does not have that much memory for frames.
  case memory(bytes: Int)

  /// One line for the user at the terminal.
  public var description: String {
    switch self {
    case .open(let path, let errorNumber): "\(path): \(SystemFailure.text(errorNumber))"
    case .notAFile(let path): "\(path) is neither a file nor a pipe"
    case .pipeCannotLoop(let path): "\(path) is a pipe, which plays only once: choose 1 loop"
    case .silentPipe(let seconds): "nothing came out of the pipe within \(seconds) s"
    case .loops(let count): "\(count) loops: choose 1 or more"
    case .notY4M: "not a y4m clip: it does not begin with YUV4MPEG2; \(Self.mend)"
    case .lineEnd:
      "the y4m header ends with CR LF, the line end of texts on Windows: the clip was changed on its way, copy it as "
        + "binary data"
    case .headerTooLong(let limit): "the y4m header does not end within \(limit) bytes"
    case .missing(let field): "the y4m header has no \(field)"
    case .repeated(let field): "the y4m header has more than one \(field)"
    case .malformed(let field, let value): "the y4m header's \(field) is “\(value)”"
    case .unknownField(let text): "the y4m header has “\(text)”, which the format does not know"
    case .size(let size):
      "a y4m clip of \(size) cannot be encoded: width and height must be even, from 16 to \(PictureSize.limit)"
    case .rate(let rate):
      "a y4m clip of \(rate.numerator)/\(rate.denominator) frames a second: it may be from 0.1 to 240"
    case .interlaced(let value): "the y4m clip is interlaced (I\(value)): ffmpeg -i in.y4m -vf yadif out.y4m mends it"
    case .highBitDepth(let value): "the y4m clip has more than 8 bits a sample (C\(value)); \(Self.mend)"
    case .chroma(let value): "the y4m clip's chroma subsampling C\(value) is not supported; \(Self.mend)"
    case .empty: "the y4m clip has no frames"
    case .truncated(let frame, let offset, let missing):
      "the y4m clip is cut off: it ends at byte \(offset), \(missing) bytes before the end of frame \(frame)"
    case .marker(let frame, let offset):
      "the y4m clip is broken: no FRAME at byte \(offset), where frame \(frame) should begin"
    case .frameHeaderTooLong(let frame, let offset, let limit):
      "the y4m clip is broken: the header of frame \(frame) at byte \(offset) does not end within \(limit) bytes"
    case .read(let frame, let offset, let errorNumber):
      "reading the y4m clip failed at byte \(offset), frame \(frame): \(SystemFailure.text(errorNumber))"
    case .capacity(let count): FramePoolError.capacity(count).description
    case .memory(let bytes): FramePoolError.memory(bytes: bytes).description
    }
  }

  /// The kind of the failure.
  public var kind: FailureKind {
    switch self {
    case .open(_, let errorNumber): errorNumber == Self.noPermission ? .noPermission : .noInput
    case .notAFile, .silentPipe: .noInput
    case .pipeCannotLoop, .loops, .capacity: .usage
    case .memory: .system
    case .read: .inputOutput
    default: .data
    }
  }

  private static let mend = "ffmpeg -i in -pix_fmt yuv420p out.y4m makes one that is"
  /// `EACCES`.
  private static let noPermission: CInt = 13
}
