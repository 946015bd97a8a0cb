import CLinux
import Glibc
import Media

/// The requests to the encoder inside a camera, by the controls of its driver (`V4L2_CID_MPEG_VIDEO_*`), or by the
/// extension unit that "USB Device Class Definition for Video Devices: H.264 Payload 1.0" defines: the kernel's driver
/// for webcams has no controls for it.
extension V4L2Device {
  /// `true` if the camera is set up for its own H.264.
  var codesPictures: Bool {
    var argument = v4l2_format()
    argument.type = bufferType
    return control(nightjar_VIDIOC_G_FMT, &argument) == 0 && DriverFormat(argument).pixelFormat == .h264
  }

  /// Requests a key frame with its parameter sets. Returns `false` if the camera cannot be asked.
  func requestKeyFrame() -> Bool {
    let control = nightjar_V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME
    // The kernel's driver for webcams writes -1 for a button that is mapped to a camera's control, and cameras refuse it.
    if canSet(control, to: 0), set(control, to: 1) == 0 { return true }
    // wLayerID for all layers, and wPicType: an IDR picture with new SPS and PPS.
    return setCoding(selector: 0x09, to: [0, 0, 2, 0])
  }

  /// Sets the bitrate in bits a second. Returns `false` if the camera does not take it.
  func setCodedBitrate(_ bitrate: Int) -> Bool {
    var query = v4l2_queryctrl()
    query.id = nightjar_V4L2_CID_MPEG_VIDEO_BITRATE
    if control(nightjar_VIDIOC_QUERYCTRL, &query) == 0 {
      let nearest = Int32(clamping: bitrate).clamped(query.minimum, query.maximum)
      let step = max(1, query.step)
      return set(query.id, to: query.minimum &+ (nearest &- query.minimum) / step &* step) == 0
    }
    // wLayerID for all layers, dwPeakBitrate, and dwAverageBitrate.
    var value: [UInt8] = [0, 0]
    for _ in 0..<2 {
      let bits = UInt32(clamping: bitrate)
      for shift in stride(from: UInt32(0), to: 32, by: 8) { value.append(UInt8(truncatingIfNeeded: bits >> shift)) }
    }
    return setCoding(selector: 0x0e, to: value)
  }

  /// Sets a control of the extension unit for H.264. Returns `false` if there is no such unit, or if it refuses.
  private func setCoding(selector: UInt8, to value: [UInt8]) -> Bool {
    guard let unit = USBDescriptors(ofVideoDevice: systemDirectory)?.h264ExtensionUnit else { return false }
    var value = value
    return nightjar_uvc_set(descriptor, unit, selector, &value, UInt16(value.count)) == 0
  }
}

extension Int32 {
  /// Returns the nearest value of a range, which a driver may give in the wrong order.
  fileprivate func clamped(_ lower: Int32, _ upper: Int32) -> Int32 { Swift.min(Swift.max(self, lower), upper) }
}

/// The descriptors of a USB device, as sysfs has them (USB 3.2 section 9.5, UVC 1.1 section 3.7).
package struct USBDescriptors {
  private let bytes: [UInt8]

  /// The largest file that is read; a device has a few kilobytes.
  private static let limit = 65_536

  /// Creates descriptors of `bytes`, which nobody has checked.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Reads the descriptors of the USB device that a video device belongs to; nil if it belongs to none.
  ///
  /// - Parameter directory: the video device's directory in sysfs.
  init?(ofVideoDevice directory: String) {
    // `device` is the USB interface, and the USB device is the directory above that.
    let descriptor = open("\(directory)/device/../descriptors", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: Self.limit)
    let count = read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return nil }
    self.init(Array(bytes[..<count]))
  }

  /// The number of the extension unit for H.264; nil if the device has none.
  package var h264ExtensionUnit: UInt8? {
    var position = 0
    while position + 2 <= bytes.count {
      let length = Int(bytes[position])
      guard length >= 2, position + length <= bytes.count else { return nil }
      // CS_INTERFACE, VC_EXTENSION_UNIT: bUnitID, guidExtensionCode.
      if length >= 20, bytes[position + 1] == 0x24, bytes[position + 2] == 0x06,
        bytes[(position + 4)..<(position + 20)].elementsEqual(Self.h264Unit)
      {
        return bytes[position + 3]
      }
      position += length
    }
    return nil
  }

  /// A29E7641-DE04-47E3-8B2B-F4341AFF003B, in the order of the descriptor.
  private static let h264Unit: [UInt8] = [
    0x41, 0x76, 0x9e, 0xa2, 0x04, 0xde, 0xe3, 0x47, 0x8b, 0x2b, 0xf4, 0x34, 0x1a, 0xff, 0x00, 0x3b,
  ]
}
