import CLinux

/// A camera's control, as its driver describes it, with its present value (V4L2 specification, "User Controls" and
/// "Camera Control Reference").
public struct CameraControl: Hashable, Sendable {
  /// The kind of a control's values.
  public enum Kind: String, Hashable, Sendable {
    /// Whole numbers, from minimum to maximum in steps.
    case integer
    /// 0 or 1.
    case boolean
    /// One of ``CameraControl/items``, by its index.
    case menu
    /// One of ``CameraControl/items``, by its index; the items are numbers.
    case integerMenu = "integer_menu"
    /// No value; setting the control triggers an action.
    case button
    /// A set of bits; ``CameraControl/maximum`` has all bits that exist.
    case bitmask
    /// Whole numbers like ``integer``, in 64 bits.
    case integer64 = "integer_64"
  }

  /// An entry of a menu.
  public struct Item: Hashable, Sendable {
    /// The value that selects the entry.
    public let index: Int64
    /// The entry in the driver's words.
    public let text: String

    /// Creates an entry.
    public init(index: Int64, text: String) { (self.index, self.text) = (index, text) }
  }

  /// The driver's flags of a control (`V4L2_CTRL_FLAG_*`).
  public struct Flags: OptionSet, Hashable, Sendable {
    /// The flags' bits.
    public let rawValue: Int
    /// Creates flags from their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// The control cannot be set.
    public static let readOnly = Flags(rawValue: 1)
    /// The control cannot be read.
    public static let writeOnly = Flags(rawValue: 2)
    /// The control has no effect now: another control overrides it.
    public static let inactive = Flags(rawValue: 4)
    /// The control cannot be set while the camera streams.
    public static let grabbed = Flags(rawValue: 8)
    /// The control changes by itself.
    public static let volatile = Flags(rawValue: 16)

    /// The flags' names, as v4l2-ctl writes them.
    public var names: [String] {
      let all: [(Flags, String)] = [
        (.grabbed, "grabbed"), (.readOnly, "read-only"), (.inactive, "inactive"), (.writeOnly, "write-only"),
        (.volatile, "volatile"),
      ]
      return all.compactMap { contains($0.0) ? $0.1 : nil }
    }
  }

  /// The control's `V4L2_CID_*`.
  public let identifier: UInt32
  /// The name in the driver's words, such as `White Balance, Automatic`.
  public let title: String
  /// The kind of the values.
  public let kind: Kind
  /// The smallest value.
  public let minimum: Int64
  /// The largest value.
  public let maximum: Int64
  /// The difference between two values; at least 1.
  public let step: Int64
  /// The default value, as the driver reports it (`default_value`).
  public let defaultValue: Int64
  /// The menu's entries; empty if the control is no menu.
  public let items: [Item]
  /// The driver's present flags.
  public var flags: Flags
  /// The present value; nil if it cannot be read.
  public var value: Int64?

  /// Creates a control.
  public init(
    identifier: UInt32, title: String, kind: Kind, minimum: Int64, maximum: Int64, step: Int64,
    defaultValue: Int64, items: [Item] = [], flags: Flags = [], value: Int64? = nil
  ) {
    (self.identifier, self.title, self.kind, self.items) = (identifier, title, kind, items)
    (self.minimum, self.maximum, self.step, self.defaultValue) = (minimum, maximum, max(1, step), defaultValue)
    (self.flags, self.value) = (flags, value)
  }

  /// The name as v4l2-ctl writes it: `white_balance_automatic`.
  public var name: String { Self.name(of: title) }

  /// Returns the name of a title: small letters and digits, with one underscore for anything between them.
  package static func name(of title: String) -> String {
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
  /// Returns the value that `text` stands for: a number, for a menu also an entry's text, for a boolean also `true`,
  /// `false`, `on`, `off`, `yes` or `no`.
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

  /// Returns `true` if the control may have `value`.
  package func permits(_ value: Int64) -> Bool {
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

  /// The permitted values for the user: `-64 to 64`, `3 to 2047 in steps of 2`, `1 (Manual Mode), 3 (…)`.
  public var limits: String {
    switch kind {
    case .button: "1"
    case .boolean: "0 or 1"
    case .bitmask: "bits of 0x\(String(maximum & 0xFFFF_FFFF, radix: 16))"
    case .menu, .integerMenu: items.map { "\($0.index) (\($0.text))" }.joined(separator: ", ")
    case .integer, .integer64: "\(minimum) to \(maximum)\(step > 1 ? " in steps of \(step)" : "")"
    }
  }

  /// Returns a value for the user: `10`, `3 (Aperture Priority Mode)`.
  public func text(of value: Int64) -> String {
    items.first { $0.index == value }.map { "\(value) (\($0.text))" } ?? "\(value)"
  }

  /// `true` if the value lasts and can be compared with the value that was set.
  var isComparable: Bool { !isAction && !flags.contains(.volatile) }

  /// `true` if each setting triggers an action, as for a button or a motion such as `V4L2_CID_PAN_RELATIVE`.
  var isAction: Bool { kind == .button || flags.contains(.writeOnly) }
}

extension [CameraControl] {
  /// Returns the control called `name`, to be set.
  ///
  /// - Throws: ``CameraControlError/unknown(name:nearest:)``, ``CameraControlError/turning(name:)``.
  func named(_ name: String) throws(CameraControlError) -> CameraControl {
    try ControlAssignment.requireSettable(name)
    if let control = first(where: { $0.name == name }) { return control }
    throw .unknown(name: name, among: map(\.name))
  }
}
