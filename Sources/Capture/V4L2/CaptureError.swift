public import Media
public import Platform

/// A reason why a camera cannot be used, or no longer.
public enum CaptureError: Failure {
  /// There is no such file.
  case noDevice(path: String)
  /// The file is not a video device.
  case notVideo(path: String)
  /// The video device delivers no pictures to programs.
  case notCapture(path: String, name: String, role: DeviceRole)
  /// The user may not open the camera.
  case noPermission(path: String)
  /// Another program uses the camera.
  case busy(path: String, holders: [DeviceHolder])
  /// The driver names no pixel format.
  case noFormats
  /// The camera compresses its pictures so that only a video decoder opens them.
  case interFrameCoded([PixelFormat])
  /// The chosen format needs a video decoder, and the camera offers other formats.
  case formatInterFrameCoded(PixelFormat, others: [PixelFormat])
  /// The camera's own H.264 is the only format that it offers, and cannot be rotated.
  case onlyCoded(path: String)
  /// The camera does not offer that pixel format.
  case formatNotOffered(PixelFormat, offered: [PixelFormat])
  /// The appliance opens none of these pixel formats.
  case formatNotReadable([PixelFormat])
  /// No encoder accepts the size.
  case sizeNotEncodable(PictureSize)
  /// The camera has no size that can be encoded.
  case noUsableSize
  /// The camera does not offer that size.
  case sizeNotOffered(PictureSize, nearest: PictureSize, format: PixelFormat?)
  /// The camera does not offer that rate.
  case rateNotOffered(FrameRate, nearest: FrameRate, size: PictureSize, format: PixelFormat?)
  /// The driver delivers single fields instead of pictures.
  case interlaced(path: String)
  /// The driver's answer is not plausible.
  case implausible(path: String, String)
  /// The driver refused a call.
  case refused(path: String, call: String, errorNumber: CInt)
  /// libv4lconvert failed, and the next picture will fail too.
  case conversion(path: String, String)
  /// The device was unplugged.
  case disconnected(path: String)
  /// The signal at the device's input differs from the negotiated one. `current` is nil if there is no signal, or none
  /// that the device can lock on to.
  case sourceChanged(path: String, agreed: PictureSize, current: PictureSize?)
  /// No picture arrived for that many seconds.
  case stalled(path: String, seconds: Int)
  /// The driver offers to rotate or mirror pictures by that control, but refused. A warning: the conversion does it.
  case turnRefused(path: String, control: String, errorNumber: CInt)
  /// The driver reports a sensor mounting at an angle by which no picture is rotated. A warning: no picture is rotated
  /// for it.
  case mounting(path: String, degrees: Int)
  /// A control that rotates or mirrors pictures is already set, by an unknown program. A warning: the control stays,
  /// and pictures are rotated on top of it.
  case turnedBefore(path: String, control: String, value: Int, usual: Int)
  /// The stream broke repeatedly.
  case broken(path: String, attempts: Int, errorNumber: CInt)

  /// One line for the user at the terminal.
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
        ? "\(path) is in use by another program (of another user, or unknown to the kernel)"
        : "\(path) is in use by \(holders.map(\.description).joined(separator: ", ")): end it, or choose another camera"
    case .noFormats:
      "the camera's driver names no pixel format"
    case .interFrameCoded(let formats):
      "the camera delivers only \(Self.list(formats)), which nightjar does not decode"
        + (formats.contains(.h264) ? "; --encoder camera passes its H.264 on" : "")
    case .formatInterFrameCoded(let format, let others):
      "nightjar does not decode \(format): choose \(Self.list(others)), or leave --format out"
    case .onlyCoded(let path):
      "\(path) delivers nothing but its own H.264, which nightjar passes on and cannot rotate"
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
        ? "\(path): the signal at its input changed in kind, still at \(current): restart the stream"
        : "\(path): the signal at its input changed to \(current), the stream has \(agreed): restart the stream"
    case .sourceChanged(let path, let agreed, nil):
      "\(path): the signal of \(agreed) at its input is gone: check the cable and what it is plugged into"
    case .stalled(let path, let seconds):
      "\(path): no picture for \(seconds) seconds; unplug the camera and plug it in again"
    case .turnRefused(let path, let control, let errorNumber):
      "\(path): the driver refused to rotate the picture (\(control): \(SystemFailure.text(errorNumber))): "
        + "nightjar rotates it, which costs a copy"
    case .mounting(let path, let degrees):
      "the driver of \(path) says that its sensor is mounted at \(degrees) degrees, not 0, 90, 180 or 270: "
        + "nightjar does not rotate pictures; choose --orientation"
    case .turnedBefore(let path, let control, let value, let usual):
      "\(path): \(control) is already \(value), and nightjar rotates on top of that. If a killed program left that "
        + "value, reset it: v4l2-ctl -d \(path) -c \(control)=\(usual)"
    case .broken(let path, let attempts, let errorNumber):
      "\(path): the stream broke \(attempts) times in a row: \(SystemFailure.text(errorNumber))"
    }
  }

  /// The kind of the failure.
  public var kind: FailureKind {
    switch self {
    case .noDevice, .notVideo, .notCapture: .noInput
    case .noPermission: .noPermission
    case .busy: .temporary
    case .formatNotOffered, .formatInterFrameCoded, .sizeNotEncodable, .sizeNotOffered, .rateNotOffered: .usage
    case .noFormats, .interFrameCoded, .onlyCoded, .formatNotReadable, .noUsableSize, .interlaced: .unavailable
    case .implausible, .conversion, .mounting: .data
    case .disconnected, .sourceChanged, .stalled: .unavailable
    case .turnedBefore: .usage
    case .refused, .turnRefused, .broken: .inputOutput
    }
  }

  /// Returns the names of the first dozen formats; a camera with 80 formats would fill the screen.
  private static func list(_ formats: [PixelFormat]) -> String {
    let names = formats.prefix(12).map(\.description).joined(separator: ", ")
    return formats.count > 12 ? "\(names) and \(formats.count - 12) more" : names
  }

  private static func suffix(_ format: PixelFormat?) -> String {
    format.map { " in \($0)" } ?? ""
  }
}
