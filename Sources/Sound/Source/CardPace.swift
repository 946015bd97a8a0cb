package import Platform

/// The pace of a device's samples against the clock.
///
/// A card delivers what it has recorded meanwhile, so that its samples are never far ahead of the clock. Devices that do
/// not wait, as alsa-lib's plugins `null` and `file`, answer each reading at once: whoever reads them without a pause
/// takes a whole processor. Once the samples of a device are too far ahead, the clock paces the readings for good.
package struct CardPace {
  /// Samples a second.
  private let rate: Double
  /// The seconds of sound that are ahead of the clock.
  private var lead = 0.0
  private var last: Instant
  /// The end of the samples so far, by the clock; nil while the device keeps the pace itself.
  private var end: Instant?

  /// The lead of a device that does not wait. A card's memory holds a tenth of this.
  private static let leadLimit = 2.0
  /// The speed of a card whose crystal is as wrong as can be, and more: such a card gains no lead.
  private static let fastestCard = 1.02
  /// The delay after which samples are left out instead of read at once, as after a pause of the machine.
  private static let pauseLimit = Duration(nanoseconds: 200_000_000)

  /// Creates the pace of a device of `rate` samples a second, whose first reading begins now.
  package init(rate: Int, at now: Instant) {
    self.rate = Double(rate)
    last = now
  }

  /// `true` once the clock paces the readings.
  package var isByClock: Bool { end != nil }

  /// Notes that `count` samples of each channel were read.
  ///
  /// - Returns: The time to which they belong by the clock, whose end is the time to hand them on; nil where the device
  ///   keeps the pace itself.
  package mutating func note(_ count: Int, at now: Instant) -> Range<Instant>? {
    let length = Double(count) / rate
    if let end {
      let first = now - end > Self.pauseLimit ? now : end
      let next = first + Duration(seconds: length)
      self.end = next
      return first..<next
    }
    lead = max(0, lead + length - (now - last).seconds * Self.fastestCard)
    last = now
    if lead > Self.leadLimit { end = now }
    return nil
  }
}
