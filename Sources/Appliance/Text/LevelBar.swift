import Serving

/// The bar of a sound's level, for `nightjar ctl status --watch`: plain characters, which every terminal and pipe shows.
enum LevelBar {
  /// The number of columns, and the level at the left end in dBFS; the right end is 0.
  static let (columns, floor) = (30, -60.0)

  /// Returns the bar, its number and its peak: `[#############....|............] -35.0 dBFS, peak -24.8, muted`.
  static func text(_ sound: StreamStatus.Sound) -> String {
    // The silence in the place of an absent microphone has no level.
    let bar = sound.present ? bar(rms: sound.loudestRmsDbfs, peak: sound.loudestPeakDbfs) : bar(rms: floor, peak: floor)
    func decibels(_ value: Double) -> String { Terminal.decimal(value, digits: 1) }
    let numbers =
      sound.present
      ? "\(decibels(sound.loudestRmsDbfs)) dBFS, peak \(decibels(sound.loudestPeakDbfs))" : "no microphone"
    return "[\(bar)] \(numbers)\(sound.muted ? ", muted" : "")"
  }

  /// Returns the columns: `#` up to the root mean square, and `|` where the peak is.
  private static func bar(rms: Double, peak: Double) -> String {
    var bar = [Character](repeating: ".", count: columns)
    for index in 0..<width(rms) { bar[index] = "#" }
    // Of a peak below the left end there is nothing to show.
    let place = width(peak)
    if place > 0 { bar[place - 1] = "|" }
    return String(bar)
  }

  /// Returns the number of columns that a level fills.
  private static func width(_ level: Double) -> Int {
    let share = (level - floor) / -floor
    return share.isFinite ? Int((min(max(share, 0), 1) * Double(columns)).rounded()) : 0
  }
}
