import CLinux

/// What a video device node is for.
public enum DeviceRole: Hashable, Sendable, CustomStringConvertible {
  /// It delivers pictures.
  case camera
  /// It delivers pictures once its media pipeline was set up by another program.
  case mediaController
  /// It turns pictures that a program hands it into others.
  case codec
  /// It shows pictures.
  case output
  /// It delivers data beside the pictures of another node.
  case metadata
  /// It delivers pictures, but not by streaming.
  case noStreaming
  /// It is a radio, a VBI or a touch device.
  case other

  /// A few words for a message.
  public var description: String {
    switch self {
    case .camera: "a camera"
    case .mediaController: "a sensor whose media pipeline has to be set up first (media-ctl)"
    case .codec: "a codec (memory to memory)"
    case .output: "a video output"
    case .metadata: "the metadata of another node"
    case .noStreaming: "it cannot stream"
    case .other: "it captures no video"
    }
  }

  /// What the flags `V4L2_CAP_*` of a device node say.
  init(capabilities: UInt32) {
    func has(_ flags: UInt32) -> Bool { capabilities & flags != 0 }
    let captures = has(nightjar_V4L2_CAP_VIDEO_CAPTURE | nightjar_V4L2_CAP_VIDEO_CAPTURE_MPLANE)
    let shows = has(nightjar_V4L2_CAP_VIDEO_OUTPUT | nightjar_V4L2_CAP_VIDEO_OUTPUT_MPLANE)
    // Old codec drivers have no flag of their own: they capture and output at one node.
    if has(nightjar_V4L2_CAP_VIDEO_M2M | nightjar_V4L2_CAP_VIDEO_M2M_MPLANE) || (captures && shows) {
      self = .codec
    } else if !captures {
      self = shows ? .output : has(nightjar_V4L2_CAP_META_CAPTURE) ? .metadata : .other
    } else if !has(nightjar_V4L2_CAP_STREAMING) {
      self = .noStreaming
    } else {
      self = has(nightjar_V4L2_CAP_IO_MC) ? .mediaController : .camera
    }
  }
}

/// What a device says about itself: `VIDIOC_QUERYCAP`.
public struct DeviceIdentity: Hashable, Sendable {
  /// The driver's name, such as `uvcvideo`.
  public let driver: String
  /// The device's name, such as `HD Pro Webcam C920`.
  public let card: String
  /// Where it is plugged in, such as `usb-0000:00:14.0-1`.
  public let bus: String
  /// What it is for.
  public let role: DeviceRole
  /// Whether it speaks the multi-planar API.
  let isMultiPlanar: Bool

  init(_ capability: v4l2_capability) {
    driver = DriverText.text(field: capability.driver)
    card = DriverText.text(field: capability.card)
    bus = DriverText.text(field: capability.bus_info)
    // `capabilities` is of the whole device, `device_caps` of this node.
    let flags =
      capability.capabilities & nightjar_V4L2_CAP_DEVICE_CAPS != 0
      ? capability.device_caps : capability.capabilities
    role = DeviceRole(capabilities: flags)
    isMultiPlanar = flags & nightjar_V4L2_CAP_VIDEO_CAPTURE == 0
  }
}
