import Glibc

/// A detector of what is probably crying: bursts of 0.45 to 3 s with the harmonics of a gliding fundamental of 300–650 Hz,
/// and breaths between the bursts.
///
/// docs/detection.md describes the features and their sources.
struct CryDetector: ~Copyable {
  /// The samples a second that it takes.
  static let rate = 12_000.0
  /// The samples from one spectrum to the next.
  static let hop = Spectrum.size / 2
  /// The seconds from one spectrum to the next.
  static let hopSeconds = Double(hop) / rate

  /// A run of voice without a breath.
  struct Burst {
    var hops = 0
    var voiced = 0
    var gap = 0
    var share: Float = 0
    var fundamental: Float = 0
    var last: Float = 0
    var glides = 0
    var flat = 0
    var steps: Float = 0
    var direction: Float = 0
    var turn: Float = 0
    var reversals = 0

    /// The length in seconds, without the breath behind it.
    var seconds: Double { Double(hops - gap) * CryDetector.hopSeconds }
  }

  private let spectrum = Spectrum()
  private let ring: UnsafeMutablePointer<Float>
  private let background: UnsafeMutablePointer<Float>
  private let clean: UnsafeMutablePointer<Float>
  private let sums: UnsafeMutablePointer<Float>
  private var samples = 0
  private var hops = 0
  private var learned = 0
  private var burst: Burst?
  /// The hops at which the last cries began, and their shares.
  private var starts = InlineArray<4, Int>(repeating: .min / 2)
  private var shares = InlineArray<4, Float>(repeating: 0)
  private var cries = 0
  /// `true` if the last cry was a clear one.
  private var isLastClear = false
  /// The hop at which a cry was heard last.
  private var last = Int.min / 2
  /// The seconds of cries in the last time, less those of other voices.
  private var evidence = 0.0
  private var begun: Int?

  /// The share of power on harmonics from which a spectrum is that of a voice.
  private static let leastShare: Float = 0.45
  private static let leastHarmonics = 3
  /// The hops without voice that end a burst: 0.13 s.
  private static let gapHops = 3
  private static let lengths = 0.45...3.0
  private static let pitches: ClosedRange<Float> = 300...650
  /// The change of the fundamental from one spectrum to the next below which it stands still, and above which another
  /// voice or note begins.
  private static let (flat, jump): (Float, Float) = (0.0025, 0.1)
  /// The most turns of the fundamental in a second: a vibrato has ten, and speech four.
  private static let mostReversals = 2.5
  /// The least share of a burst that has voice: consonants interrupt speech.
  private static let leastVoice = 0.88
  /// The seconds of cries, less those of other voices, that make crying; and the part of them that is left after a hop.
  private static let leastEvidence = 1.7
  private static let fading = pow(0.5, hopSeconds / 8)
  /// The cries that make crying, the clear ones that do, of which the last may go on, and the seconds for which that one has lasted
  /// at least.
  private static let (leastCries, leastClear, leastPresent) = (3, 2, 0.6)
  /// The share of steps in which the fundamental of a clear cry stands still at most, and its mean step.
  private static let (clearFlat, clearGlides): (Double, ClosedRange<Float>) = (0.3, 0.004...0.04)
  /// The hops within which those bursts begin: twelve seconds; and the hops after the last burst until it is over.
  private static let window = Int(12 / hopSeconds)
  private static let hold = Int(8 / hopSeconds)

  init() {
    func zeros(_ count: Int) -> UnsafeMutablePointer<Float> {
      let memory = UnsafeMutablePointer<Float>.allocate(capacity: count)
      memory.initialize(repeating: 0, count: count)
      return memory
    }
    ring = zeros(Spectrum.size)
    (background, clean) = (zeros(Spectrum.bins), zeros(Spectrum.bins))
    sums = zeros(Spectrum.bins + 1)
  }

  deinit { for memory in [ring, background, clean, sums] { memory.deallocate() } }

  /// `true` while somebody probably cries.
  var isActive: Bool { begun != nil }
  /// The seconds for which somebody has probably cried; nil for nobody.
  var age: Double? { begun.map { Double(hops - $0) * Self.hopSeconds } }

  /// The confidence, 0…1: more bursts with clearer harmonics give more.
  var confidence: Double {
    guard begun != nil else { return 0 }
    var sum: Float = 0
    let count = min(cries, shares.count)
    for index in 0..<count { sum += shares[index] }
    let mean = Double(sum) / Double(max(1, count))
    return min(0.99, 0.4 + 0.45 * min(1, mean) + 0.05 * Double(count - 3) + 0.02 * Double(min(5, max(0, cries - 4))))
  }

  /// Notes the next sample. `excess` is the level's distance from the background, in decibels.
  mutating func note(_ sample: Float, excess: Double) {
    ring[samples & (Spectrum.size - 1)] = sample
    samples += 1
    guard samples % Self.hop == 0, samples >= Spectrum.size else { return }
    hops += 1
    evidence *= Self.fading
    analyze(excess)
    if begun != nil, hops - last > Self.hold { (begun, cries) = (nil, 0) }
  }

  private mutating func analyze(_ excess: Double) {
    // Most of the time nothing is louder than the background. Then only every fourth hop measures a spectrum, once
    // the background is known.
    let isQuiet = excess < 4
    if isQuiet {
      finishHop(nil)
      guard learned < 16 || hops % 4 == 0 else { return }
    }
    spectrum.measure(ring, from: samples)
    if isQuiet {
      learn()
    } else {
      for index in 0..<Spectrum.bins { clean[index] = max(0, spectrum.powers[index] - 1.5 * background[index]) }
      let stack = HarmonicStack.find(clean, sums, width: Float(Self.rate) / Float(Spectrum.size))
      finishHop(stack.flatMap { $0.share >= Self.leastShare && $0.count >= Self.leastHarmonics ? $0 : nil })
    }
  }

  private mutating func learn() {
    learned += 1
    let part: Float = learned < 10 ? 1 / Float(learned) : 0.1
    for index in 0..<Spectrum.bins { background[index] += part * (spectrum.powers[index] - background[index]) }
  }

  private mutating func finishHop(_ stack: HarmonicStack?) {
    guard let stack else {
      guard var burst else { return }
      burst.hops += 1
      burst.gap += 1
      self.burst = burst
      if burst.gap >= Self.gapHops { end(burst) }
      return
    }
    if let burst, burst.gap == 0, abs(stack.fundamental / burst.last - 1) > Self.jump { end(burst) }
    var burst = burst ?? Burst()
    if burst.voiced > 0 {
      let step = stack.fundamental / burst.last - 1
      burst.glides += 1
      burst.steps += abs(step)
      if abs(step) < Self.flat { burst.flat += 1 }
      // A turn counts once the fundamental has gone one percent in the other direction.
      if step * burst.direction >= 0 || burst.direction == 0 {
        if burst.direction == 0 { burst.direction = step }
        burst.turn = max(0, burst.turn - abs(step))
      } else {
        burst.turn += abs(step)
        if burst.turn > 0.01 { (burst.reversals, burst.direction, burst.turn) = (burst.reversals + 1, step, 0) }
      }
    }
    burst.hops += 1
    burst.voiced += 1
    burst.gap = 0
    burst.share += stack.share
    burst.fundamental += stack.fundamental
    burst.last = stack.fundamental
    self.burst = burst
    // Nobody waits for the end of a clear cry.
    guard isLastClear, cries + 1 >= Self.leastClear, burst.seconds >= Self.leastPresent,
      evidence + burst.seconds >= Self.leastEvidence, Self.isCry(burst), Self.isClear(burst)
    else { return }
    begin(after: Self.leastClear - 1)
  }

  /// Begins crying with the last `count` cries, if they are of one time.
  private mutating func begin(after count: Int) {
    let first = starts[(cries - count) % starts.count]
    guard begun == nil, hops - first <= Self.window else { return }
    (begun, last) = (first, hops)
  }

  private mutating func end(_ burst: Burst) {
    self.burst = nil
    guard Self.isCry(burst) else {
      evidence = max(0, evidence - Double(burst.voiced) * Self.hopSeconds)
      return
    }
    evidence += burst.seconds
    starts[cries % starts.count] = hops - burst.hops
    shares[cries % shares.count] = burst.share / Float(burst.voiced)
    (last, isLastClear) = (hops - burst.gap, Self.isClear(burst))
    cries += 1
    if cries >= Self.leastCries, evidence >= Self.leastEvidence { begin(after: Self.leastCries) }
  }

  /// Returns `true` for a cry that no note and no speech resembles: its fundamental glides all the time, and slowly.
  private static func isClear(_ burst: Burst) -> Bool {
    Double(burst.flat) <= clearFlat * Double(burst.glides) && clearGlides.contains(burst.steps / Float(burst.glides))
  }

  /// Returns `true` for a burst that a crying child makes: long enough, high enough, and gliding, as a note does not.
  static func isCry(_ burst: Burst) -> Bool {
    guard lengths.contains(burst.seconds), burst.voiced > 5, burst.glides > 4 else { return false }
    let mean = burst.fundamental / Float(burst.voiced)
    let glide = burst.steps / Float(burst.glides)
    return Double(burst.voiced) >= leastVoice * Double(burst.hops - burst.gap) && pitches.contains(mean) && glide < 0.06
      && Double(burst.flat) < 0.5 * Double(burst.glides)
      && Double(burst.reversals) <= max(1, mostReversals * burst.seconds)
  }
}
