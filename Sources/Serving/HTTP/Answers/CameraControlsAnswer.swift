/// A camera's own settings: the answer to `GET /v1/cameras/{camera}/controls`, its keys in `snake_case`.
package struct CameraControlsAnswer: Codable, Hashable, Sendable {
  /// An entry of a menu.
  package struct Item: Codable, Hashable, Sendable {
    /// The value of the entry.
    package var value: Int64
    /// The entry's name, in the driver's words.
    package var text: String

    /// Creates an entry.
    package init(value: Int64, text: String) { (self.value, self.text) = (value, text) }
  }

  /// One setting.
  package struct Control: Codable, Hashable, Sendable {
    /// The name, as v4l2-ctl writes it.
    package var name: String
    /// The name in the driver's words.
    package var title: String
    /// `integer`, `boolean`, `menu`, `integer_menu`, `button`, `bitmask` or `integer_64`.
    package var type: String
    /// The current value; nil if it cannot be read.
    package var value: Int64?
    /// The default value.
    package var `default`: Int64
    /// The least value.
    package var minimum: Int64
    /// The largest value.
    package var maximum: Int64
    /// The step from one value to the next.
    package var step: Int64
    /// The entries; nil if the setting is no menu.
    package var menu: [Item]?
    /// The flags that are set, of `grabbed`, `read-only`, `inactive`, `write-only`, `volatile`.
    package var flags: [String]
    /// The origin of the value: `configuration`, `lock`, `night` or `ctl`; nil if this program has not set it.
    package var setBy: String?
    /// The reason why the setting has no effect now, and the remedy; nil if it has.
    package var inactivity: String?

    /// Creates a setting.
    package init(
      name: String, title: String, type: String, value: Int64?, default: Int64, minimum: Int64, maximum: Int64,
      step: Int64, menu: [Item]?, flags: [String], setBy: String?, inactivity: String?
    ) {
      (self.name, self.title, self.type, self.value, self.default) = (name, title, type, value, `default`)
      (self.minimum, self.maximum, self.step, self.menu) = (minimum, maximum, step, menu)
      (self.flags, self.setBy, self.inactivity) = (flags, setBy, inactivity)
    }
  }

  /// `off`, `settling` or `locked`.
  package var sensorLock: String
  /// `true` at night; nil if night and day are not distinguished.
  package var night: Bool?
  /// All settings, in the driver's order.
  package var controls: [Control]

  /// Creates an answer.
  package init(sensorLock: String, night: Bool?, controls: [Control]) {
    (self.sensorLock, self.night, self.controls) = (sensorLock, night, controls)
  }
}

/// The camera's own settings, as the control API uses them.
///
/// Called as ``ControlTarget`` is.
package protocol ControlledCamera: Sendable {
  /// Returns all settings.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func controls() async throws -> CameraControlsAnswer

  /// Sets some settings, in the order that the driver needs; nil resets what was set this way. Returns all of them
  /// afterwards.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func changeControls(_ values: [(name: String, value: String?)]) async throws -> CameraControlsAnswer

  /// Fixes the camera's automatic settings once they have settled, or frees them.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func lockSensor(_ isLocked: Bool) async throws -> CameraControlsAnswer
}
