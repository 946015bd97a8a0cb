import Glibc

/// The harmonics of a voice in one spectrum.
struct HarmonicStack {
  /// The fundamental frequency in Hz.
  var fundamental: Float
  /// The share of the power that lies on the harmonics, beyond what noise would have there: 0…1.
  var share: Float
  /// The number of the first six harmonics that stand out from the valleys beside them.
  var count: Int

  /// The fundamental frequencies that are looked for, in Hz: those of crying, 300–650, and a margin.
  static let fundamentals: ClosedRange<Float> = 280...680
  private static let step: Float = 4
  /// The highest frequency that counts, in Hz.
  private static let highest: Float = 4500
  /// The lowest frequency that counts, in Hz: below there is the hum of rooms.
  private static let lowest: Float = 230
  private static let most = 8
  /// A harmonic stands out by 6 dB.
  private static let prominence: Float = 4

  /// Finds the harmonics that fit a spectrum best; nil for a spectrum without power.
  ///
  /// - Parameters:
  ///   - powers: the powers from 0 Hz on, those of the background taken away.
  ///   - width: the distance of two powers in Hz.
  static func find(_ powers: UnsafePointer<Float>, _ sums: UnsafeMutablePointer<Float>, width: Float) -> HarmonicStack?
  {
    let bins = Int(highest / width) + 8
    let first = Int(lowest / width)
    var sum: Float = 0
    for index in 0..<bins {
      if index >= first { sum += powers[index] }
      sums[index + 1] = sum
    }
    sums[0] = 0
    guard sum > 0 else { return nil }
    var best: HarmonicStack?
    var fundamental = fundamentals.lowerBound
    while fundamental <= fundamentals.upperBound {
      let share = share(of: fundamental, sums, bins: bins, width: width)
      if share > best?.share ?? 0 { best = HarmonicStack(fundamental: fundamental, share: share, count: 0) }
      fundamental += step
    }
    guard var best else { return nil }
    best.refine(powers, width: width)
    best.share = Self.share(of: best.fundamental, sums, bins: bins, width: width)
    best.count = Self.count(of: best.fundamental, sums, width: width)
    return best
  }

  /// Returns the share of the power within two bins of a harmonic, less the share that noise would have there.
  private static func share(of fundamental: Float, _ sums: UnsafePointer<Float>, bins: Int, width: Float) -> Float {
    let harmonics = min(most, Int(highest / fundamental))
    let first = Int(max(lowest, 0.5 * fundamental) / width)
    let last = min(bins, Int((Float(harmonics) + 0.5) * fundamental / width))
    let all = sums[last] - sums[first]
    guard all > 0 else { return 0 }
    var on: Float = 0
    for harmonic in 1...harmonics {
      let center = Int((Float(harmonic) * fundamental / width).rounded())
      on += sums[center + 3] - sums[center - 2]
    }
    let expected = Float(5 * harmonics) / Float(last - first)
    // What lies beyond the harmonics counts against them.
    return (on / max(all, sums[bins] * 0.999) - expected) / (1 - expected)
  }

  /// Moves the fundamental to where the strongest harmonics have their peaks.
  private mutating func refine(_ powers: UnsafePointer<Float>, width: Float) {
    var (sum, weight): (Float, Float) = (0, 0)
    for harmonic in 1...min(Self.most, Int(Self.highest / fundamental)) {
      let center = Int((Float(harmonic) * fundamental / width).rounded())
      var peak = center
      for index in (center - 2)...(center + 2) where powers[index] > powers[peak] { peak = index }
      let (left, middle, right) = (powers[peak - 1], powers[peak], powers[peak + 1])
      guard middle > 0, middle >= left, middle >= right else { continue }
      // The vertex of the parabola through the roots, which fits a Hann window well enough.
      let (a, b, c) = (left.squareRoot(), middle.squareRoot(), right.squareRoot())
      let curve = a - 2 * b + c
      let shift = curve < 0 ? max(-0.5, min(0.5, 0.5 * (a - c) / curve)) : 0
      // A high harmonic tells the fundamental better.
      let own = b * Float(harmonic)
      sum += (Float(peak) + shift) * width / Float(harmonic) * own
      weight += own
    }
    if weight > 0 { fundamental = sum / weight }
  }

  private static func count(of fundamental: Float, _ sums: UnsafePointer<Float>, width: Float) -> Int {
    var count = 0
    for harmonic in 1...min(6, Int(highest / fundamental)) {
      let center = Float(harmonic) * fundamental / width
      let middle = Int(center.rounded())
      let half = 0.5 * fundamental / width
      let (left, right) = (Int((center - half).rounded()), Int((center + half).rounded()))
      let on = (sums[middle + 3] - sums[middle - 2]) / 5
      let off = (sums[left + 3] - sums[left - 2] + sums[right + 3] - sums[right - 2]) / 10
      // What is far below all others is a rest of the background.
      if on > prominence * off, on * 5 > 0.003 * sums[Int(highest / width)] { count += 1 }
    }
    return count
  }
}
