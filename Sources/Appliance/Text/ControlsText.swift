import FoundationEssentials
package import Serving

/// The text form of a camera's controls.
package enum ControlsText {
  /// Returns all controls, a line each and one more for a control with an explanation.
  package static func text(_ controls: [CameraControlsAnswer.Control]) -> String {
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

  /// Returns `3 (Aperture Priority Mode)`.
  package static func value(of control: CameraControlsAnswer.Control) -> String {
    guard control.type != "button" else { return "a button" }
    guard let value = control.value else { return "unreadable" }
    return text(of: value, control)
  }

  /// Returns one control as a line of JSON in the API's form.
  package static func json(_ control: CameraControlsAnswer.Control) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Only non-finite numbers could fail, and these are integers.
    return ((try? encoder.encode(control)).map { String(decoding: $0, as: UTF8.self) } ?? "{}") + "\n"
  }

  /// Returns a line for each of `names`.
  package static func values(of names: [String], in answer: CameraControlsAnswer) -> String {
    answer.controls.filter { names.contains($0.name) }.map { "\($0.name): \(value(of: $0))\n" }.joined()
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
