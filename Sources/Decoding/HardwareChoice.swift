/// The choice between hardware and software in the course of a stream. It is made anew at each key frame.
///
/// Hardware that fails is given up for a while, and tried again: after 32 key frames, then 64, up to 1024, or at once where
/// another sequence begins, which the driver may decode. Pictures of several slices are for software, because no driver tells
/// that one of them is missing. A sequence that had such pictures stays in software: one of its pictures that has a single slice
/// may have lost the others.
package struct HardwareChoice {
  /// `true` if a driver opened.
  private(set) var isPresent: Bool
  /// `true` if a picture had several slices since the last new SPS.
  private(set) var hasSlices = false
  private var failures = 0
  /// The key frames until hardware is tried again.
  private var pause = 0

  /// The number of failures after which another sequence is no reason to try again.
  private static let patience = 4

  package init(isPresent: Bool) { self.isPresent = isPresent }

  /// Begins anew with another decoder. What is known of the stream stays.
  package mutating func begin(isPresent: Bool) { (self.isPresent, failures, pause) = (isPresent, 0, 0) }

  /// Notes what comes in an access unit: a picture of several slices, and a new SPS, of which no picture had any yet.
  package mutating func note(isSliced: Bool, isNewSequence: Bool) {
    hasSlices = isSliced || hasSlices && !isNewSequence
  }

  /// Returns `true` if hardware is to decode from this key frame on, which was noted.
  package mutating func wantsHardware(isNewSequence: Bool) -> Bool {
    if isNewSequence, failures <= Self.patience {
      pause = 0
    } else if pause > 0 {
      pause -= 1
    }
    return isPresent && !hasSlices && pause == 0
  }

  /// Notes that hardware has failed, or refused the stream.
  package mutating func fail() {
    failures = min(failures + 1, 6)
    pause = 16 << failures
  }
}
