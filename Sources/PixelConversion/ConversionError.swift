public import Media
public import Platform

/// A reason why a picture could not be converted to NV12.
public enum ConversionError: Failure, Hashable {
  /// The converter does not support the format.
  case unsupported(PixelFormat)
  /// The size is odd, too small or too large.
  case size(PictureSize)
  /// The target frame does not have the converter's size.
  case frameSize(PictureSize, expected: PictureSize)
  /// The picture came in fewer memory planes than its format has.
  case planes(got: Int, expected: Int)
  /// The distance between rows is smaller than their length, or implausibly large.
  case stride(Int, minimum: Int)
  /// The buffer holds fewer bytes than the picture has.
  case short(got: Int, expected: Int)
  /// The compressed picture is broken; with the decoder's reason.
  case corrupt(String)
  /// The library created no decoder.
  case unavailable(library: String)

  /// One line for the user at the terminal.
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

  /// The kind of the failure.
  public var kind: FailureKind {
    switch self {
    case .unsupported, .size: .usage
    case .frameSize, .planes: .software
    case .stride, .short, .corrupt: .data
    case .unavailable: .system
    }
  }
}
