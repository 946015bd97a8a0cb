public import Media

/// Why a camera cannot be used, or can be used no longer.
public enum CaptureError: Failure {
  /// No such file.
  case noDevice(path: String)
  /// A file, but no video device.
  case notVideo(path: String)
  /// A video device that delivers no pictures to programs.
  case notCapture(path: String, name: String, role: DeviceRole)
  /// The user may not open it.
  case noPermission(path: String)
  /// Another program uses it.
  case busy(path: String, holders: [DeviceHolder])
  /// The driver names no pixel format.
  case noFormats
  /// The camera compresses its pictures in a way that only a video decoder opens.
  case interFrameCoded([PixelFormat])
  /// The format that was chosen has to be decoded first, and the camera has others.
  case formatInterFrameCoded(PixelFormat, others: [PixelFormat])
  /// The camera does not offer that pixel format.
  case formatNotOffered(PixelFormat, offered: [PixelFormat])
  /// Nothing here can open these pixel formats.
  case formatNotReadable([PixelFormat])
  /// The size cannot be encoded by anybody.
  case sizeNotEncodable(PictureSize)
  /// The camera has no size that can be encoded.
  case noUsableSize
  /// The camera does not offer that size.
  case sizeNotOffered(PictureSize, nearest: PictureSize, format: PixelFormat?)
  /// The camera does not offer that rate.
  case rateNotOffered(FrameRate, nearest: FrameRate, size: PictureSize, format: PixelFormat?)
  /// The driver delivers fields, one by one, instead of pictures.
  case interlaced(path: String)
  /// The driver's answer cannot be true.
  case implausible(path: String, String)
  /// The driver refused a call.
  case refused(path: String, call: String, errorNumber: CInt)
  /// libv4lconvert failed in a way that another picture will not mend.
  case conversion(path: String, String)
  /// The device went away.
  case disconnected(path: String)
  /// The signal at the device's input is another than the one that was agreed on; `current` is nil where there is
  /// none, or none that the device can lock on to.
  case sourceChanged(path: String, agreed: PictureSize, current: PictureSize?)
  /// No picture came for so many seconds.
  case stalled(path: String, seconds: Int)
  /// The driver offers to turn or mirror pictures by that control, but refused; a warning: it is done here.
  case turnRefused(path: String, control: String, errorNumber: CInt)
  /// The driver says that its sensor is mounted at an angle that no picture is turned by; a warning: none is.
  case mounting(path: String, degrees: Int)
  /// A control that turns or mirrors pictures is set, by whomever; a warning: it stays, and pictures are laid on top.
  case turnedBefore(path: String, control: String, value: Int, usual: Int)
  /// The stream broke again and again.
  case broken(path: String, attempts: Int, errorNumber: CInt)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .noDevice(let path):
      "there is no \(path): is the camera plugged in? `nightjar devices` lists the cameras"
    case .notVideo(let path):
      "\(path) is not a video device; `nightjar devices` lists the cameras"
    case .notCapture(let path, let name, let role):
      "\(path) (\(name)) is not a camera: \(role); `nightjar devices` lists the cameras"
    case .noPermission(let path):
      "no permission to open \(path): join the group video (sudo usermod -aG video \"$USER\") and log in again"
    case .busy(let path, let holders):
      holders.isEmpty
        ? "\(path) is in use by another program (one of another user, or the kernel does not tell)"
        : "\(path) is in use by \(holders.map(\.description).joined(separator: ", ")): end it, or take another camera"
    case .noFormats:
      "the camera's driver names no pixel format"
    case .interFrameCoded(let formats):
      "the camera delivers only \(Self.list(formats)), which has to be decoded first: not supported yet"
    case .formatInterFrameCoded(let format, let others):
      "\(format) has to be decoded first, which is not supported yet: choose \(Self.list(others)), or no format at all"
    case .formatNotOffered(let format, let offered):
      "the camera does not offer \(format); it has \(Self.list(offered))"
    case .formatNotReadable(let formats):
      "no way to open \(Self.list(formats)) pictures"
    case .sizeNotEncodable(let size):
      "\(size) cannot be encoded: width and height must be even, from 16 to \(PictureSize.limit)"
    case .noUsableSize:
      "the camera has no size that can be encoded (even, from 16 to \(PictureSize.limit))"
    case .sizeNotOffered(let size, let nearest, let format):
      "the camera does not offer \(size)\(Self.suffix(format)); the nearest is \(nearest)"
    case .rateNotOffered(let rate, let nearest, let size, let format):
      "the camera does not offer \(rate) fps at \(size)\(Self.suffix(format)); the nearest is \(nearest)"
    case .interlaced(let path):
      "\(path) delivers single fields of interlaced video: set its input to a progressive signal"
    case .implausible(let path, let what):
      "the driver of \(path) \(what)"
    case .refused(let path, let call, let errorNumber):
      "\(path): \(call): \(SystemFailure.text(errorNumber))"
    case .conversion(let path, let reason):
      "\(path): libv4l: \(reason)"
    case .disconnected(let path):
      "\(path): the camera was unplugged"
    case .sourceChanged(let path, let agreed, let current?):
      agreed == current
        ? "\(path): the signal at its input changed in kind, still at \(current): start again to stream it"
        : "\(path): the signal at its input changed to \(current), the stream is of \(agreed): start again to stream it"
    case .sourceChanged(let path, let agreed, nil):
      "\(path): the signal of \(agreed) at its input is gone: check the cable and what it is plugged into"
    case .stalled(let path, let seconds):
      "\(path): no picture for \(seconds) seconds; unplug the camera and plug it in again"
    case .turnRefused(let path, let control, let errorNumber):
      "\(path): the driver refused to turn the picture (\(control): \(SystemFailure.text(errorNumber))): "
        + "it is turned here, at the cost of a copy"
    case .mounting(let path, let degrees):
      "the driver of \(path) says that its sensor is mounted at \(degrees) degrees, not 0, 90, 180 or 270: "
        + "pictures are left as they come; choose an orientation"
    case .turnedBefore(let path, let control, let value, let usual):
      "\(path): \(control) is \(value) already and pictures are laid on top of that; if a program that was killed left "
        + "it so: v4l2-ctl -d \(path) -c \(control)=\(usual)"
    case .broken(let path, let attempts, let errorNumber):
      "\(path): the stream broke \(attempts) times in a row: \(SystemFailure.text(errorNumber))"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .noDevice, .notVideo, .notCapture: .noInput
    case .noPermission: .noPermission
    case .busy: .temporary
    case .formatNotOffered, .formatInterFrameCoded, .sizeNotEncodable, .sizeNotOffered, .rateNotOffered: .usage
    case .noFormats, .interFrameCoded, .formatNotReadable, .noUsableSize, .interlaced: .unavailable
    case .implausible, .conversion, .mounting: .data
    case .disconnected, .sourceChanged, .stalled: .unavailable
    case .turnedBefore: .usage
    case .refused, .turnRefused, .broken: .inputOutput
    }
  }

  /// The first dozen of them; a camera with 80 formats would fill the screen.
  private static func list(_ formats: [PixelFormat]) -> String {
    let names = formats.prefix(12).map(\.description).joined(separator: ", ")
    return formats.count > 12 ? "\(names) and \(formats.count - 12) more" : names
  }

  private static func suffix(_ format: PixelFormat?) -> String {
    format.map { " in \($0)" } ?? ""
  }
}
