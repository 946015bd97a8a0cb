package import CLinux
import Glibc
import Platform

/// A device whose controls can be listed: a video device.
package protocol CameraControlDevice: AnyObject, Sendable {
  /// Returns all controls that can be shown and set, with their values, in the driver's order.
  func controls() -> [CameraControl]
  /// Returns the present state of a control; nil if it is gone.
  func refreshed(_ control: CameraControl) -> CameraControl?
  /// Sets a control. Returns 0, or the `errno` of the driver's refusal.
  func set(_ control: CameraControl, to value: Int64) -> CInt
  /// `true` if the camera is set up for its own H.264.
  var codesPictures: Bool { get }
  /// Requests a key frame from the encoder in the camera. Returns `false` if the camera cannot be asked.
  func requestKeyFrame() -> Bool
  /// Sets the bitrate of the encoder in the camera, in bits a second. Returns `false` if the camera does not take it.
  func setCodedBitrate(_ bitrate: Int) -> Bool
}

extension V4L2Device: CameraControlDevice {
  func controls() -> [CameraControl] {
    CameraControl.list { query in
      control(nightjar_VIDIOC_QUERY_EXT_CTRL, &query) == 0
    } menu: { identifier, index in
      item(identifier, index)
    }.map(withValue)
  }

  func refreshed(_ control: CameraControl) -> CameraControl? {
    var query = v4l2_query_ext_ctrl()
    query.id = control.identifier
    guard self.control(nightjar_VIDIOC_QUERY_EXT_CTRL, &query) == 0, query.id == control.identifier else { return nil }
    var control = control
    control.flags = CameraControl.Flags(query.flags)
    return withValue(control)
  }

  func set(_ control: CameraControl, to value: Int64) -> CInt {
    retrying { nightjar_set_control(descriptor, control.identifier, control.isWide ? 1 : 0, value) }
  }

  private func withValue(_ control: CameraControl) -> CameraControl {
    var control = control
    control.value = nil
    guard !control.isAction else { return control }
    var value: Int64 = 0
    let isWide: CInt = control.isWide ? 1 : 0
    if retrying({ nightjar_control_value(descriptor, control.identifier, isWide, &value) }) == 0 {
      control.value = CameraControl.unsigned(value, control.kind)
    }
    return control
  }

  private func item(_ identifier: UInt32, _ index: UInt32) -> CameraControl.MenuAnswer? {
    var name = [UInt8](repeating: 0, count: 32)
    var value: Int64 = 0
    guard retrying({ nightjar_menu_item(descriptor, identifier, index, &name, &value) }) == 0 else { return nil }
    return CameraControl.MenuAnswer(name: name, value: value)
  }

  private func retrying(_ call: () -> CInt) -> CInt {
    do throws(SystemFailure) { return try syscall("ioctl", call) } catch { return error.errorNumber }
  }
}

extension CameraControl {
  /// The answer of `VIDIOC_QUERYMENU` for an entry: its text, or the number of an integer menu's entry.
  package struct MenuAnswer {
    let name: [UInt8]
    let value: Int64

    /// Creates an answer.
    package init(name: [UInt8], value: Int64) {
      (self.name, self.value) = (name, value)
    }
  }

  /// The largest number of controls read from a driver: vivid, which has all kinds, has about 80.
  private static let listLimit = 512
  private static let itemLimit: Int64 = 128

  /// `true` if the value has 64 bits.
  var isWide: Bool { kind == .integer64 }

  /// Returns all controls except those of structures, arrays and texts. The function trusts no answer of the driver:
  /// neither that the list ends, nor that a menu has as many entries as reported.
  ///
  /// - Parameters:
  ///   - query: calls `VIDIOC_QUERY_EXT_CTRL`.
  ///   - menu: calls `VIDIOC_QUERYMENU` for a control and an index.
  package static func list(
    query: (inout v4l2_query_ext_ctrl) -> Bool, menu: (UInt32, UInt32) -> MenuAnswer?
  ) -> [CameraControl] {
    var controls: [CameraControl] = []
    var last: UInt32 = 0
    for _ in 0..<listLimit {
      var answer = v4l2_query_ext_ctrl()
      answer.id = last | nightjar_V4L2_CTRL_FLAG_NEXT_CTRL
      // Each control has a larger number than the one before (V4L2 specification, "Enumerating Extended Controls").
      guard query(&answer), answer.id > last, answer.id & nightjar_V4L2_CTRL_FLAG_NEXT_CTRL == 0 else { break }
      last = answer.id
      if let control = CameraControl(answer, menu: menu) { controls.append(control) }
    }
    return controls
  }

  private init?(_ answer: v4l2_query_ext_ctrl, menu: (UInt32, UInt32) -> MenuAnswer?) {
    let useless = nightjar_V4L2_CTRL_FLAG_DISABLED | nightjar_V4L2_CTRL_FLAG_HAS_PAYLOAD
    guard answer.flags & useless == 0, answer.nr_of_dims == 0, answer.elems <= 1 else { return nil }
    guard let kind = Self.kind(v4l2_ctrl_type(rawValue: answer.type)) else { return nil }
    let title = DriverText.text(field: answer.name)
    guard !Self.name(of: title).isEmpty else { return nil }
    var items: [Item] = []
    if kind == .menu || kind == .integerMenu {
      let last = min(answer.maximum, Self.itemLimit - 1)
      for index in 0...max(0, last) where index >= answer.minimum {
        guard let item = menu(answer.id, UInt32(index)) else { continue }
        items.append(
          Item(index: index, text: kind == .menu ? DriverText.text(item.name) : "\(item.value)"))
      }
    }
    self.init(
      identifier: answer.id, title: title, kind: kind, minimum: answer.minimum,
      maximum: Self.unsigned(answer.maximum, kind), step: Int64(clamping: answer.step),
      defaultValue: Self.unsigned(answer.default_value, kind), items: items, flags: Flags(answer.flags))
  }

  /// Returns the value of a bitmask without the sign: its 32 bits have none, but the kernel extends one.
  static func unsigned(_ value: Int64, _ kind: Kind) -> Int64 { kind == .bitmask ? value & 0xFFFF_FFFF : value }

  private static func kind(_ type: v4l2_ctrl_type) -> Kind? {
    switch type {
    case V4L2_CTRL_TYPE_INTEGER: .integer
    case V4L2_CTRL_TYPE_BOOLEAN: .boolean
    case V4L2_CTRL_TYPE_MENU: .menu
    case V4L2_CTRL_TYPE_INTEGER_MENU: .integerMenu
    case V4L2_CTRL_TYPE_BUTTON: .button
    case V4L2_CTRL_TYPE_BITMASK: .bitmask
    case V4L2_CTRL_TYPE_INTEGER64: .integer64
    default: nil
    }
  }
}

extension CameraControl.Flags {
  /// `V4L2_CTRL_FLAG_*`.
  fileprivate init(_ flags: UInt32) {
    self = []
    let known: [(UInt32, CameraControl.Flags)] = [
      (nightjar_V4L2_CTRL_FLAG_READ_ONLY, .readOnly), (nightjar_V4L2_CTRL_FLAG_WRITE_ONLY, .writeOnly),
      (nightjar_V4L2_CTRL_FLAG_INACTIVE, .inactive), (nightjar_V4L2_CTRL_FLAG_GRABBED, .grabbed),
      (nightjar_V4L2_CTRL_FLAG_VOLATILE, .volatile),
    ]
    for (bit, flag) in known where flags & bit != 0 { insert(flag) }
  }
}
