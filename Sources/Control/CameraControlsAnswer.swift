/// A camera's own settings: the answer to `GET /v1/cameras/{camera}/controls`, its keys in `snake_case`.
public struct CameraControlsAnswer: Codable, Hashable, Sendable {
  /// An entry of a menu.
  public struct Item: Codable, Hashable, Sendable {
    /// The value that stands for it.
    public var value: Int64
    /// What it is, in the driver's words.
    public var text: String

    /// All of it.
    public init(value: Int64, text: String) { (self.value, self.text) = (value, text) }
  }

  /// One setting.
  public struct Control: Codable, Hashable, Sendable {
    /// Its name, as v4l2-ctl writes it.
    public var name: String
    /// Its name in the driver's words.
    public var title: String
    /// `integer`, `boolean`, `menu`, `integer_menu`, `button`, `bitmask` or `integer_64`.
    public var type: String
    /// What it is; nil where it cannot be read.
    public var value: Int64?
    /// What it is unless somebody sets it.
    public var `default`: Int64
    /// The least value.
    public var minimum: Int64
    /// The largest value.
    public var maximum: Int64
    /// From one value to the next.
    public var step: Int64
    /// The entries; nil where it is no menu.
    public var menu: [Item]?
    /// `grabbed`, `read-only`, `inactive`, `write-only`, `volatile`, as far as they hold.
    public var flags: [String]
    /// Whose value it has: `configuration`, `lock`, `night` or `ctl`; nil where nobody here has set it.
    public var setBy: String?
    /// Why it has no effect now, and the mend; nil where it has.
    public var inactivity: String?

    /// All of it.
    public init(
      name: String, title: String, type: String, value: Int64?, default: Int64, minimum: Int64, maximum: Int64,
      step: Int64, menu: [Item]?, flags: [String], setBy: String?, inactivity: String?
    ) {
      (self.name, self.title, self.type, self.value, self.default) = (name, title, type, value, `default`)
      (self.minimum, self.maximum, self.step, self.menu) = (minimum, maximum, step, menu)
      (self.flags, self.setBy, self.inactivity) = (flags, setBy, inactivity)
    }
  }

  /// `off`, `settling` or `locked`.
  public var sensorLock: String
  /// Whether it is night; nil where that is not told from day.
  public var night: Bool?
  /// All settings, in the driver's order.
  public var controls: [Control]

  /// All of it.
  public init(sensorLock: String, night: Bool?, controls: [Control]) {
    (self.sensorLock, self.night, self.controls) = (sensorLock, night, controls)
  }
}

/// What of a camera's own settings can be asked for.
///
/// Called as ``ControlTarget`` is.
public protocol ControlledCamera: Sendable {
  /// All settings.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func controls() async throws -> CameraControlsAnswer

  /// Sets some, in the order that the driver needs; nil takes back what was set so. All of them afterwards.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func changeControls(_ values: [(name: String, value: String?)]) async throws -> CameraControlsAnswer

  /// Fixes what the camera sets by itself once it has settled, or frees it.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func lockSensor(_ isLocked: Bool) async throws -> CameraControlsAnswer
}
