public import Media

/// A quality level that waits for its key frame.
struct AwaitedQuality {
  /// The level; 0 for the driver's default.
  let level: Int
  /// The frames that were encoded meanwhile.
  var frames = 0

  /// The seconds of frames after which the level waits no longer.
  static let patience = 10.0
}

extension VAAPIEncoder {
  /// The driver's quality levels; nil if there are none to choose from, or their numbers are no scale.
  public var qualityLevels: QualityLevels? {
    guard let count = stream.levelCount else { return nil }
    let level = stream.rate.quality ?? 0
    return QualityLevels(count: count, present: level > 0 ? level : nil, isFixed: isQualityFixed)
  }

  /// Requests another quality level; see ``/Media/StagedVideoEncoder``.
  public func change(vaapiQuality level: Int?) {
    guard let count = stream.levelCount, !isQualityFixed else { return }
    let wanted = level.map { min(max($0, 1), count) } ?? 0
    let present = stream.rate.quality ?? 0
    guard wanted != present else {
      awaitedQuality = nil
      return
    }
    // The level from which the driver starts is unknown if it was told none: then the first request is not urgent.
    let slower = present > 0 ? present : awaitedQuality?.level ?? 0
    if slower > 0, wanted > slower { needsKeyFrame = true }
    awaitedQuality = AwaitedQuality(level: wanted)
  }

  /// Returns `true` if a level has waited long enough to make a key frame for it. Called once a frame.
  func waitForQuality() -> Bool {
    guard awaitedQuality != nil else { return false }
    awaitedQuality?.frames += 1
    return Double(awaitedQuality?.frames ?? 0) > configuration.frameRate.framesPerSecond * AwaitedQuality.patience
  }

  /// Takes the level that waits, for an IDR picture. Returns the rate parameters before; nil if none waits.
  func beginAwaitedQuality() -> RateParameters? {
    guard let awaited = awaitedQuality else { return nil }
    let former = stream.rate
    awaitedQuality = nil
    stream.rate.quality = awaited.level
    return former
  }

  /// Returns to `former`, because the driver has refused a picture with another level.
  func refuseQuality(_ former: RateParameters) {
    stream.rate = former
    isQualityFixed = true
  }

  /// Awaits the level once more, because the driver has refused the picture with the former level too: it has another reason, such
  /// as an imported buffer.
  func awaitQualityAgain(_ level: Int) {
    awaitedQuality = AwaitedQuality(level: level)
    isQualityFixed = false
  }
}
