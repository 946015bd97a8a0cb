package import CLinux

/// The purpose of a video device node.
public enum DeviceRole: Hashable, Sendable, CustomStringConvertible {
  /// The node delivers pictures.
  case camera
  /// The node delivers pictures after another program set up its media pipeline.
  case mediaController
  /// The node converts pictures that a program gives it.
  case codec
  /// The node shows pictures.
  case output
  /// The node delivers data that accompany another node's pictures.
  case metadata
  /// The node delivers pictures, but not by streaming.
  case noStreaming
  /// The node is a radio, VBI or touch device.
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

  /// Creates the role from the flags `V4L2_CAP_*` of a device node.
  package init(capabilities: UInt32) {
    func has(_ flags: UInt32) -> Bool { capabilities & flags != 0 }
    let captures = has(nightjar_V4L2_CAP_VIDEO_CAPTURE | nightjar_V4L2_CAP_VIDEO_CAPTURE_MPLANE)
    let shows = has(nightjar_V4L2_CAP_VIDEO_OUTPUT | nightjar_V4L2_CAP_VIDEO_OUTPUT_MPLANE)
    // Old codec drivers have no flag of their own: one node captures and outputs.
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

/// A device's description of itself: `VIDIOC_QUERYCAP`.
public struct DeviceIdentity: Hashable, Sendable {
  /// The driver's name, such as `uvcvideo`.
  public let driver: String
  /// The device's name, such as `HD Pro Webcam C920`.
  public let card: String
  /// The port that the device is plugged into, such as `usb-0000:00:14.0-1`.
  public let bus: String
  /// The purpose of the node.
  public let role: DeviceRole
  /// `true` if the device uses the multi-planar API.
  let isMultiPlanar: Bool

  package init(_ capability: v4l2_capability) {
    driver = DriverText.text(field: capability.driver)
    card = DriverText.text(field: capability.card)
    bus = DriverText.text(field: capability.bus_info)
    // `capabilities` describes the whole device, `device_caps` this node.
    let flags =
      capability.capabilities & nightjar_V4L2_CAP_DEVICE_CAPS != 0
      ? capability.device_caps : capability.capabilities
    role = DeviceRole(capabilities: flags)
    isMultiPlanar = flags & nightjar_V4L2_CAP_VIDEO_CAPTURE == 0
  }
}
