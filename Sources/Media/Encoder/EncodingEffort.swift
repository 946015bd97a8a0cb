/// The effort that an encoder spends on a picture: a step of the encoder's own scale, 0 for the least. Each encoder
/// maps the steps to its own presets.
public struct EncodingEffort: RawRepresentable, Hashable, Sendable {
  /// The step, 0 for the least.
  public let rawValue: Int

  /// Creates the effort of a step.
  public init(rawValue: Int) { self.rawValue = rawValue }
}
