extension SequenceParameterSet {
  /// The profile; nil for a profile that the encoders do not produce.
  public var profile: H264Profile? {
    switch profileIDC {
    case 66: constraintFlags & 0x40 != 0 ? .baseline : nil
    case 77: .main
    case 100: .high
    default: nil
    }
  }

  /// The level as text: `3.1`, `1b` (clause A.3.1, table A-1).
  public var level: String {
    let isOneB = levelIDC == 9 || levelIDC == 11 && profileIDC < 100 && constraintFlags & 0x10 != 0
    if isOneB { return "1b" }
    return levelIDC.isMultiple(of: 10) ? "\(levelIDC / 10)" : "\(levelIDC / 10).\(levelIDC % 10)"
  }

  /// The frame rate by the VUI's timing, two ticks a frame; nil where the timing is missing or zero.
  public var frameRate: FrameRate? {
    guard let timing else { return nil }
    // Halves the numerator where it stays whole; otherwise doubles the denominator where that fits.
    if timing.timeScale.isMultiple(of: 2) { return FrameRate(timing.timeScale / 2, timing.unitsInTick) }
    guard timing.unitsInTick <= UInt32.max / 2 else { return FrameRate(timing.timeScale, UInt32.max) }
    return FrameRate(timing.timeScale, timing.unitsInTick * 2)
  }
}
