/// The limits of a configuration.
package enum ConfigurationLimits {
  /// The size limit of a file, in bytes.
  package static let fileSize = 1 << 20
  /// The error message for a larger file.
  static let fileIsTooLarge = "it has more than the \(fileSize) bytes that are read; is it the right file?"
  /// The limit of cameras in an appliance.
  package static let cameras = 8
  /// The size limit of a value, in bytes.
  package static let valueSize = 4096
  /// The limit of values in a list.
  package static let listCount = 64
}
