/// How much a configuration may hold.
public enum ConfigurationLimits {
  /// Bytes of a file.
  public static let fileSize = 1 << 20
  /// Cameras of a box.
  public static let cameras = 8
  /// Bytes of a value.
  public static let valueSize = 4096
  /// Values of a list.
  public static let listCount = 64
}
