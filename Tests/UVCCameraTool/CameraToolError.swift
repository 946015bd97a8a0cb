import Glibc

/// The reason for which the tool ends, or its answer to a command that it cannot obey.
enum CameraToolError: Error, CustomStringConvertible {
  case usage
  case system(String, errorNumber: CInt)
  case notJPEG(path: String, offset: Int)
  case notH264(path: String)
  case notOneSize(path: String)
  case empty(path: String)
  case notWhole(path: String, pictureBytes: Int)
  case pathTooLong(String)
  case unknownCommand(String)
  case alreadyPlugged
  case notPlugged

  var description: String {
    switch self {
    case .usage:
      "UVCCameraTool SOCKET [--mjpeg FILE]… [--yuyv WxH:FILE]… [--h264 WxH:FILE]… [--serial TEXT] "
        + "[--product TEXT] [--port 0…7] [--microphone HZ] [--log FILE] [--slow PPM], or UVCCameraTool ctl SOCKET WORD…"
    case .system(let call, let errorNumber): "\(call): \(String(cString: strerror(errorNumber)))"
    case .notJPEG(let path, let offset): "\(path): no whole JPEG picture at byte \(offset)"
    case .notH264(let path): "\(path): no H.264 with start codes that begins with a key frame"
    case .notOneSize(let path): "\(path): pictures of several sizes; give a file for each"
    case .empty(let path): "\(path): there is nothing in it"
    case .notWhole(let path, let pictureBytes): "\(path): no whole pictures of \(pictureBytes) bytes each"
    case .pathTooLong(let path): "\(path): longer than a socket's name may be"
    case .unknownCommand(let line):
      "unknown command \(line); there are state, unplug, plug, stall, freeze, rate-drop, resume, "
        + "corrupt N [truncated|header|bits], short N"
    case .alreadyPlugged: "the camera is plugged in already"
    case .notPlugged: "the camera is not plugged in"
    }
  }
}
