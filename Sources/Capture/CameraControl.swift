import CLinux
import Media

/// A setting of a camera, as its driver describes it and as it is now (V4L2 specification, "User Controls" and "Camera
/// Control Reference").
public struct CameraControl: Hashable, Sendable {
  /// What its values are.
  public enum Kind: String, Hashable, Sendable {
    /// Whole numbers, from minimum to maximum in steps.
    case integer
    /// 0 or 1.
    case boolean
    /// One of ``CameraControl/items``, by its index.
    case menu
    /// The same, and the items are numbers.
    case integerMenu = "integer_menu"
    /// It has no value; to set it does something.
    case button
    /// Bits, of which maximum has those that are there.
    case bitmask
    /// As ``integer``, in 64 bits.
    case integer64 = "integer_64"
  }

  /// An entry of a menu.
  public struct Item: Hashable, Sendable {
    /// The value that stands for it.
    public let index: Int64
    /// What it is, in the driver's words.
    public let text: String

    /// An entry.
    public init(index: Int64, text: String) { (self.index, self.text) = (index, text) }
  }

  /// What the driver says of it (`V4L2_CTRL_FLAG_*`).
  public struct Flags: OptionSet, Hashable, Sendable {
    /// The flags' bits.
    public let rawValue: Int
    /// Flags by their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// It cannot be set.
    public static let readOnly = Flags(rawValue: 1)
    /// It cannot be read.
    public static let writeOnly = Flags(rawValue: 2)
    /// It has no effect now: another control does what it would.
    public static let inactive = Flags(rawValue: 4)
    /// It cannot be set while the camera streams.
    public static let grabbed = Flags(rawValue: 8)
    /// It changes by itself.
    public static let volatile = Flags(rawValue: 16)

    /// Their names, as v4l2-ctl writes them.
    public var names: [String] {
      let all: [(Flags, String)] = [
        (.grabbed, "grabbed"), (.readOnly, "read-only"), (.inactive, "inactive"), (.writeOnly, "write-only"),
        (.volatile, "volatile"),
      ]
      return all.compactMap { contains($0.0) ? $0.1 : nil }
    }
  }

  /// `V4L2_CID_*`.
  public let identifier: UInt32
  /// Its name in the driver's words, such as `White Balance, Automatic`.
  public let title: String
  /// What its values are.
  public let kind: Kind
  /// The least value.
  public let minimum: Int64
  /// The largest value.
  public let maximum: Int64
  /// From one value to the next; at least 1.
  public let step: Int64
  /// What it is unless somebody sets it, as the driver says (`default_value`).
  public let defaultValue: Int64
  /// The menu's entries; none where it is no menu.
  public let items: [Item]
  /// What the driver says of it now.
  public var flags: Flags
  /// What it is; nil where it cannot be read.
  public var value: Int64?

  /// A control.
  public init(
    identifier: UInt32, title: String, kind: Kind, minimum: Int64, maximum: Int64, step: Int64,
    defaultValue: Int64, items: [Item] = [], flags: Flags = [], value: Int64? = nil
  ) {
    (self.identifier, self.title, self.kind, self.items) = (identifier, title, kind, items)
    (self.minimum, self.maximum, self.step, self.defaultValue) = (minimum, maximum, max(1, step), defaultValue)
    (self.flags, self.value) = (flags, value)
  }

  /// Its name as v4l2-ctl writes it: `white_balance_automatic`.
  public var name: String { Self.name(of: title) }

  /// Small letters and digits, and one underscore for what is between them.
  static func name(of title: String) -> String {
    var name = ""
    var hasGap = false
    for byte in title.utf8 {
      let folded = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
      guard (0x61...0x7A).contains(folded) || (0x30...0x39).contains(folded) else {
        hasGap = true
        continue
      }
      if hasGap, !name.isEmpty { name += "_" }
      hasGap = false
      name.unicodeScalars.append(Unicode.Scalar(folded))
    }
    return name
  }
}

extension CameraControl {
  /// Reads a value: a number, of a menu an entry's index or text, of a boolean `true`, `false`, `on` or `off` too.
  ///
  /// - Throws: ``CameraControlError/value(_:of:limits:)``.
  public func value(_ text: String) throws(CameraControlError) -> Int64 {
    guard let value = parsed(text), permits(value) else {
      throw .value(String(text.prefix(64)), of: name, limits: limits)
    }
    return value
  }

  private func parsed(_ text: String) -> Int64? {
    switch kind {
    case .button: return ["1", "true", "press"].contains(text) ? 1 : nil
    case .boolean:
      switch text {
      case "true", "on", "yes": return 1
      case "false", "off", "no": return 0
      default: break
      }
    case .menu, .integerMenu:
      if let index = Int64(text) { return index }
      let wanted = Self.name(of: text)
      return items.first { Self.name(of: $0.text) == wanted }?.index
    case .bitmask: if text.hasPrefix("0x") { return Int64(text.dropFirst(2), radix: 16) }
    case .integer, .integer64: break
    }
    return Int64(text)
  }

  /// Whether it may be `value`.
  func permits(_ value: Int64) -> Bool {
    switch kind {
    case .button: return true
    case .menu, .integerMenu: return items.contains { $0.index == value }
    case .bitmask: return value & ~(maximum & 0xFFFF_FFFF) == 0
    case .boolean: return value == 0 || value == 1
    case .integer, .integer64:
      guard minimum <= value, value <= maximum else { return false }
      let (distance, isOverflown) = value.subtractingReportingOverflow(minimum)
      return isOverflown || distance.isMultiple(of: step)
    }
  }

  /// What it may be, for a person: `-64 to 64`, `3 to 2047 in steps of 2`, `1 (Manual Mode), 3 (…)`.
  public var limits: String {
    switch kind {
    case .button: "1"
    case .boolean: "0 or 1"
    case .bitmask: "bits of 0x\(String(maximum & 0xFFFF_FFFF, radix: 16))"
    case .menu, .integerMenu: items.map { "\($0.index) (\($0.text))" }.joined(separator: ", ")
    case .integer, .integer64: "\(minimum) to \(maximum)\(step > 1 ? " in steps of \(step)" : "")"
    }
  }

  /// A value for a person: `10`, `3 (Aperture Priority Mode)`.
  public func text(of value: Int64) -> String {
    items.first { $0.index == value }.map { "\(value) (\($0.text))" } ?? "\(value)"
  }

  /// Whether its value is one that lasts, and can be compared with what was set.
  var isComparable: Bool { !isAction && !flags.contains(.volatile) }

  /// Whether to set it does something each time, as a button does, or a motion such as `V4L2_CID_PAN_RELATIVE`.
  var isAction: Bool { kind == .button || flags.contains(.writeOnly) }
}

extension [CameraControl] {
  /// The control called `name`, to be set.
  ///
  /// - Throws: ``CameraControlError/unknown(name:nearest:)``, ``CameraControlError/turning(name:)``.
  func named(_ name: String) throws(CameraControlError) -> CameraControl {
    try ControlAssignment.requireSettable(name)
    if let control = first(where: { $0.name == name }) { return control }
    throw .unknown(name: name, among: map(\.name))
  }
}
