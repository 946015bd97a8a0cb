/// The coding of pictures on the wire; the raw value is the index of its format descriptor.
enum PictureCoding: Int {
  case mjpeg = 1
  case yuyv = 2
  case h264 = 3

  /// V4L2's name.
  var name: String {
    switch self {
    case .mjpeg: "MJPG"
    case .yuyv: "YUYV"
    case .h264: "H264"
    }
  }
}

/// One size of one coding: a frame descriptor.
struct CameraFormat: Equatable {
  let coding: PictureCoding
  /// Counted from 1 within the coding.
  let index: Int
  let width: Int
  let height: Int

  /// `dwMaxVideoFrameSize`; of YUYV every picture's size.
  var byteLimit: Int { width * height * 2 }

  /// `dwFrameInterval` of 30 and 15 fps, in units of 100 ns.
  static let intervals = [333_333, 666_666]
}
