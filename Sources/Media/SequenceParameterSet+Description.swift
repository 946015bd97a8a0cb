extension SequenceParameterSet {
  /// The profile, nil where it is none that this program makes.
  public var profile: H264Profile? {
    switch profileIDC {
    case 66: constraintFlags & 0x40 != 0 ? .baseline : nil
    case 77: .main
    case 100: .high
    default: nil
    }
  }

  /// The level as it is written: `3.1`, `1b` (clause A.3.1, table A-1).
  public var level: String {
    let isOneB = levelIDC == 9 || levelIDC == 11 && profileIDC < 100 && constraintFlags & 0x10 != 0
    if isOneB { return "1b" }
    return levelIDC.isMultiple(of: 10) ? "\(levelIDC / 10)" : "\(levelIDC / 10).\(levelIDC % 10)"
  }

  /// Frames a second by the VUI's timing, two ticks a frame; nil where it has none, or zeros.
  public var frameRate: FrameRate? {
    guard let timing else { return nil }
    // Halved on that side where it stays whole, or fits.
    if timing.timeScale.isMultiple(of: 2) { return FrameRate(timing.timeScale / 2, timing.unitsInTick) }
    guard timing.unitsInTick <= UInt32.max / 2 else { return FrameRate(timing.timeScale, UInt32.max) }
    return FrameRate(timing.timeScale, timing.unitsInTick * 2)
  }
}
