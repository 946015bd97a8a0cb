import Capture
import Control
import FoundationEssentials
import Media

/// A camera's own settings, as the control API sees them.
extension StreamCamera {
  func controls() async throws -> CameraControlsAnswer {
    let controls = try settable()
    return CameraControlsAnswer(try await controls.list(), controls.status)
  }

  func changeControls(_ values: [(name: String, value: String?)]) async throws -> CameraControlsAnswer {
    let controls = try settable()
    controlled.add("controls")
    return CameraControlsAnswer(try await controls.change(values), controls.status)
  }

  func lockSensor(_ isLocked: Bool) async throws -> CameraControlsAnswer {
    let controls = try settable()
    controlled.add("sensor-lock")
    return CameraControlsAnswer(try await controls.lockSensor(isLocked), controls.status)
  }

  private func settable() throws(CommandFailure) -> CameraControls {
    guard let cameraControls else {
      throw CommandFailure(kind: .unavailable, description: "what is streamed is no camera, and has no controls")
    }
    return cameraControls
  }
}

extension CameraControlsAnswer {
  init(_ entries: [CameraControls.Entry], _ status: CameraControls.Status) {
    self.init(sensorLock: status.sensorLock, night: status.isNight, controls: entries.map(Control.init))
  }
}

extension CameraControlsAnswer.Control {
  /// A control as the API shows it.
  init(_ entry: CameraControls.Entry) {
    let control = entry.control
    self.init(
      name: control.name, title: control.title, type: control.kind.rawValue, value: control.value,
      default: control.defaultValue, minimum: control.minimum, maximum: control.maximum, step: control.step,
      menu: control.items.isEmpty
        ? nil : control.items.map { CameraControlsAnswer.Item(value: $0.index, text: $0.text) },
      flags: control.flags.names, setBy: entry.origin, inactivity: entry.inactivity?.description)
  }
}

extension StreamStatus.Controls {
  init(_ status: CameraControls.Status) {
    self.init(
      sensorLock: status.sensorLock, night: status.isNight, brightness: status.brightness,
      complaints: status.complaints)
  }
}

/// A camera's settings in words.
enum ControlsText {
  /// All of them, a line each and one more where there is something to explain.
  static func text(_ controls: [CameraControlsAnswer.Control]) -> String {
    let width = controls.map(\.name.utf8.count).max() ?? 0
    return controls.map { control in
      let name = control.name + String(repeating: " ", count: width - control.name.utf8.count)
      var line = "\(name)  \(value(of: control)); \(limits(of: control))"
      let flags = control.flags.filter { $0 != "inactive" }
      if !flags.isEmpty { line += "; \(flags.joined(separator: ", "))" }
      if let origin = control.setBy { line += "; set by \(origin == "configuration" ? "the configuration" : origin)" }
      if let inactivity = control.inactivity { line += "\n\(String(repeating: " ", count: width))  \(inactivity)" }
      return line + "\n"
    }.joined()
  }

  /// `3 (Aperture Priority Mode)`.
  static func value(of control: CameraControlsAnswer.Control) -> String {
    guard control.type != "button" else { return "a button" }
    guard let value = control.value else { return "unreadable" }
    return text(of: value, control)
  }

  /// One as a line of JSON, as the API writes it.
  static func json(_ control: CameraControlsAnswer.Control) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Only non-finite numbers could fail, and these are whole.
    return ((try? encoder.encode(control)).map { String(decoding: $0, as: UTF8.self) } ?? "{}") + "\n"
  }

  private static func text(of value: Int64, _ control: CameraControlsAnswer.Control) -> String {
    if let item = control.menu?.first(where: { $0.value == value }) { return "\(value) (\(item.text))" }
    return "\(value)"
  }

  private static func limits(of control: CameraControlsAnswer.Control) -> String {
    switch control.type {
    case "button": return "=1 presses it"
    case "boolean": return "0 or 1, usually \(control.default)"
    case "bitmask": return "bits of 0x\(String(control.maximum & 0xFFFF_FFFF, radix: 16)), usually \(control.default)"
    default: break
    }
    if let menu = control.menu {
      return menu.map { "\($0.value) (\($0.text))" }.joined(separator: ", ") + "; usually \(control.default)"
    }
    let step = control.step > 1 ? " in steps of \(control.step)" : ""
    return "\(control.minimum) to \(control.maximum)\(step), usually \(control.default)"
  }
}
