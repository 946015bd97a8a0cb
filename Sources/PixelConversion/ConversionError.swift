public import Media

/// Why a picture could not become NV12.
public enum ConversionError: Failure, Hashable {
  /// The format is none that is converted here.
  case unsupported(PixelFormat)
  /// The size is odd, too small or too large.
  case size(PictureSize)
  /// The frame to write to is not of the size that the converter was made for.
  case frameSize(PictureSize, expected: PictureSize)
  /// The picture came in fewer memory planes than its format has.
  case planes(got: Int, expected: Int)
  /// The rows are closer together than they are long, or absurdly far apart.
  case stride(Int, minimum: Int)
  /// The buffer holds fewer bytes than the picture has.
  case short(got: Int, expected: Int)
  /// The compressed picture is broken; the reason in the decoder's words.
  case corrupt(String)
  /// The library gave no decoder.
  case unavailable(library: String)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .unsupported(let format):
      "pixel format \(format) is not converted here: choose another of the camera's formats"
    case .size(let size):
      "a picture of \(size) cannot be encoded: width and height must be even, from 16 to \(PictureSize.limit)"
    case .frameSize(let size, let expected): "a frame of \(size) for a converter of \(expected)"
    case .planes(let got, let expected): "the picture came in \(got) planes, its format has \(expected)"
    case .stride(let stride, let minimum): "rows of \(minimum) bytes cannot begin every \(stride) bytes"
    case .short(let got, let expected): "the picture's buffer holds \(got) bytes of \(expected)"
    case .corrupt(let reason): "the picture is corrupt: \(reason)"
    case .unavailable(let library): "\(library) has no memory for a decoder"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .unsupported, .size: .usage
    case .frameSize, .planes: .software
    case .stride, .short, .corrupt: .data
    case .unavailable: .system
    }
  }
}
