import Glibc
package import Media
package import Platform

/// Chooses the quality level of the hardware that encodes a stream: the best with which 99 of 100 frames are encoded within half a
/// frame interval. The rules and waits are those of ``QualityGovernor``; a budget of processors does not matter to hardware.
///
/// ```
///                 room                 room
/// level 7 ────────────► 5 … ────────────► 1
///         ◄──────────── ◄────────────
///               late frames, slow frames, heat
/// ```
///
/// A level is judged by pictures that were encoded with it: a better one takes effect at a key frame that is due.
package struct LevelGovernor: Sendable {
  /// The most rungs: a driver may have hundreds of levels.
  static let rungLimit = 7
  /// The encode time of the best level, as a multiple of that of the fastest: an estimate for all hardware. A level that takes
  /// longer is left after the first measurement.
  package static let bestCost = 4.0
  /// The time of frames after which a level that has not taken effect stops nothing else.
  static let patience = Duration(seconds: 15)

  /// The number of the driver's levels.
  package let count: Int
  private var governor: QualityGovernor
  private var present: Int?
  /// The time of frames for which ``level`` has not been the level of the pictures.
  private var waited = Duration.zero

  /// Creates a governor of `levels`, which begins with the present one, or with the middle one, the usual choice of drivers; nil if
  /// there is nothing to choose from.
  package init?(_ levels: QualityLevels) {
    guard levels.count > 1 else { return nil }
    let rungs = Self.ladder(ofLevels: levels.count)
    let start = levels.present.flatMap { level in rungs.firstIndex { $0.effort.rawValue == levels.count - level } }
    (count, present) = (levels.count, levels.present)
    governor = QualityGovernor(rungs: rungs, start: start ?? (rungs.count - 1) / 2, budget: .infinity)
  }

  /// Returns the ladder of `count` levels, the fastest first. The effort of a rung is the number of levels that it is above the
  /// fastest.
  package static func ladder(ofLevels count: Int) -> [QualityGovernor.Rung] {
    let steps = min(count, rungLimit) - 1
    return (0...steps).map { step in
      let effort = (step * (count - 1) + steps / 2) / steps
      return QualityGovernor.Rung(
        effort: EncodingEffort(rawValue: effort), cost: pow(bestCost, Double(effort) / Double(count - 1)))
    }
  }

  /// The chosen level.
  package var level: Int { count - governor.effort.rawValue }
  /// The level that the encode stage takes by itself when two frames in a row are late: faster than the chosen one, and than that
  /// of the pictures, which may still wait for a better one. Nil if there is none.
  package var faster: Int? {
    let present = max(level, levelAtWork)
    return governor.rungs.prefix(governor.rung).map { count - $0.effort.rawValue }.last { $0 > present }
  }
  /// The level of the pictures: the chosen one, or the former one until the other takes effect.
  package var levelAtWork: Int { present ?? level }
  /// `true` if no faster level is to be expected: this is the fastest, or no other takes effect.
  package var isLeast: Bool { governor.rung == 0 || waited >= Self.patience }
  /// The encode time of 99 in 100 frames in the last seconds; nil before it is known.
  package var percentile99: Duration? { governor.percentile99 }
  /// The reason for the last change; nil before any.
  package var reason: QualityGovernor.Reason? { governor.reason }
  /// The number of changes so far.
  package var changes: Int { governor.changes }

  /// Takes a measurement of hardware. Returns `true` if ``level`` has changed.
  ///
  /// - Parameters:
  ///   - level: the level of the last picture; nil for the driver's own choice.
  ///   - claim: returns `true` if this stream may change now; of several streams one at a time may.
  package mutating func note(
    _ measurement: QualityGovernor.Measurement, at level: Int?, now: Instant, claim: () -> Bool = { true }
  ) -> Bool {
    present = level
    guard level == self.level else {
      if measurement.times.count > 0 { waited = waited + measurement.elapsed }
      return false
    }
    guard waited == .zero else {
      // The first measurement has pictures of both levels.
      waited = .zero
      return false
    }
    var hardware = measurement
    // Hardware takes time and no processor.
    (hardware.encoderTime, hardware.processTime) = (.zero, .zero)
    return governor.note(hardware, at: now, claim: claim)
  }

  /// Notes that the encode stage has taken `level` by itself, because frames were late: that which ``faster`` has named.
  package mutating func noteFallen(to level: Int, at now: Instant) {
    governor.noteFallen(to: EncodingEffort(rawValue: count - level), at: now)
  }
}
