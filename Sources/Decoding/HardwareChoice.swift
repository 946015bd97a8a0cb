/// The choice between hardware and software in the course of a stream. It is made anew at each key frame.
///
/// Hardware that fails is given up for a while, and tried again: after 32 key frames, then 64, up to 1024, or at once where
/// another sequence begins, which the driver may decode. Pictures of several slices are for software, because no driver tells
/// that one of them is missing.
struct HardwareChoice {
  /// `true` if a driver opened.
  var isPresent: Bool
  private var failures = 0
  /// The key frames until hardware is tried again.
  private var pause = 0

  /// The number of failures after which another sequence is no reason to try again.
  private static let patience = 4

  init(isPresent: Bool) { self.isPresent = isPresent }

  /// Returns `true` if hardware is to decode from the next key frame on.
  mutating func wantsHardware(isSliced: Bool, isNewSequence: Bool) -> Bool {
    if isNewSequence, failures <= Self.patience {
      pause = 0
    } else if pause > 0 {
      pause -= 1
    }
    return isPresent && !isSliced && pause == 0
  }

  /// Notes that hardware has failed, or refused the stream.
  mutating func fail() {
    failures = min(failures + 1, 6)
    pause = 16 << failures
  }
}
