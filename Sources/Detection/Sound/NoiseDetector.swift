import Glibc

/// The sensitivity of the noise detector: the decibels above the background at which noise begins.
package struct NoiseSensitivity: Hashable, Sendable {
  /// The decibels above the background.
  package let decibels: Double

  /// The allowed values.
  package static let limits = 3.0...40.0
  /// A shout, or a child that cries in the same room.
  package static let low = NoiseSensitivity(decibels: 20)
  /// A voice in the same room.
  package static let medium = NoiseSensitivity(decibels: 14)
  /// A whisper near the microphone, or a voice through a door.
  package static let high = NoiseSensitivity(decibels: 8)

  /// Creates a sensitivity.
  package init(decibels: Double) { self.decibels = decibels }
}

/// A detector of noise: a level in the band 300–3000 Hz well above the background, which it learns from the quietest moments
/// of the last ten seconds. So a fan, rain or a machine for white noise becomes the background.
package struct NoiseDetector {
  /// The time of one power that is noted, in seconds.
  package static let blockSeconds = 0.02
  /// The time over which the level is the mean, in blocks: a breath between two cries is longer.
  private static let meanBlocks = 5
  /// The time for which the level must be high, before noise begins: a click is shorter.
  private static let attackBlocks = 15
  /// The time for which noise goes on after its last loud moment.
  private static let holdBlocks = 150
  /// The decibels below the limit at which a level is no longer loud while noise goes on.
  private static let hysteresis = 3.0
  /// The background that is assumed at least, in dBFS: no room is quieter in a way that matters.
  private static let quietest = -70.0
  /// The time of one minimum, in blocks, and the number of minima: ten of one second.
  private static let minimumBlocks = 50
  /// The decibels by which the least of a hundred means of noise lies below the mean.
  private static let minimumBias = 1.0

  private let sensitivity: NoiseSensitivity
  private var powers = InlineArray<5, Double>(repeating: 0)
  private var minima = InlineArray<10, Double>(repeating: .infinity)
  private var current = Double.infinity
  private var blocks = 0
  private var loudBlocks = 0
  private var blocksSinceLoud = 0
  private var begun: Int?

  /// The level of the last tenth of a second within the band, in dBFS.
  package private(set) var level = -100.0
  /// The background, in dBFS.
  package private(set) var floor = 0.0

  /// Creates a detector that has not heard anything.
  package init(_ sensitivity: NoiseSensitivity) { self.sensitivity = sensitivity }

  /// `true` while there is noise.
  package var isActive: Bool { begun != nil }
  /// The seconds for which there has been noise; nil without noise.
  package var age: Double? { begun.map { Double(blocks - $0) * Self.blockSeconds } }
  /// The decibels of the level above the background.
  package var excess: Double { level - floor }

  /// Notes the mean square of a block, where 1 is that of full scale.
  package mutating func note(_ power: Double) {
    powers[blocks % Self.meanBlocks] = power
    blocks += 1
    guard blocks >= Self.meanBlocks else { return }
    var sum = 0.0
    for index in powers.indices { sum += powers[index] }
    let mean = sum / Double(Self.meanBlocks)
    level = mean > 1e-10 ? 10 * log10(mean) : -100
    learn()
    judge()
  }

  private mutating func learn() {
    current = min(current, level)
    if blocks % Self.minimumBlocks == 0 {
      minima[blocks / Self.minimumBlocks % minima.count] = current
      current = level
    }
    var least = current
    for index in minima.indices { least = min(least, minima[index]) }
    floor = max(least + Self.minimumBias, Self.quietest)
  }

  private mutating func judge() {
    // The first second is the first background.
    guard blocks > Self.minimumBlocks else { return }
    let limit = floor + sensitivity.decibels
    if begun == nil {
      loudBlocks = level >= limit ? min(loudBlocks + 1, Self.attackBlocks) : max(loudBlocks - 1, 0)
      guard loudBlocks >= Self.attackBlocks else { return }
      begun = blocks - Self.attackBlocks
      blocksSinceLoud = 0
    } else if level >= limit - Self.hysteresis {
      blocksSinceLoud = 0
    } else {
      blocksSinceLoud += 1
      guard blocksSinceLoud >= Self.holdBlocks else { return }
      (begun, loudBlocks) = (nil, 0)
    }
  }
}
