import Media
import Synchronization

/// The requests to the encoder, from any thread to the encode stage.
final class EncoderRequests: Sendable {
  private let keyFrame = Atomic(false)
  /// The requested bitrate in bits a second; 0 for no request.
  private let bitrate = Atomic(0)
  private let wanted = Atomic(true)
  private let isRestricted = Atomic(false)
  private let restrictions = Mutex(EncoderRestrictions())
  private let governed = Atomic(false)
  /// The effort that the encode stage takes by itself when frames are late; -1 for none.
  private let fallback = Atomic(-1)
  /// The effort that the encode stage has taken by itself; -1 for none.
  private let fallen = Atomic(-1)

  /// `true` if the stream has a viewer.
  var isWanted: Bool { wanted.load(ordering: .relaxed) }

  /// Sets whether the stream has a viewer. Without one the encoder rests.
  func setWanted(_ value: Bool) {
    wanted.store(value, ordering: .relaxed)
  }

  /// Requests a key frame.
  func setKeyFrame() {
    keyFrame.store(true, ordering: .relaxed)
  }

  /// Requests `value` bits a second.
  func setBitrate(_ value: Int) {
    bitrate.store(value, ordering: .relaxed)
  }

  /// Requests restrictions, or the end of them.
  func setRestrictions(_ value: EncoderRestrictions) {
    restrictions.withLock { $0 = value }
    isRestricted.store(true, ordering: .releasing)
  }

  /// Returns the restrictions that were requested since the last call.
  func takeRestrictions() -> EncoderRestrictions? {
    guard isRestricted.load(ordering: .relaxed), isRestricted.exchange(false, ordering: .acquiring) else { return nil }
    return restrictions.withLock { $0 }
  }

  /// Returns `true` if a key frame was requested since the last call.
  func takeKeyFrame() -> Bool {
    keyFrame.load(ordering: .relaxed) && keyFrame.exchange(false, ordering: .relaxed)
  }

  /// Returns the bitrate that was requested since the last call.
  func takeBitrate() -> Int? {
    guard bitrate.load(ordering: .relaxed) != 0 else { return nil }
    let value = bitrate.exchange(0, ordering: .relaxed)
    return value == 0 ? nil : value
  }

  /// `true` if a governor chooses the effort, and needs the encode times.
  var isGoverned: Bool { governed.load(ordering: .relaxed) }

  /// Requests `value`, as ``setRestrictions(_:)`` does, and names the effort to take by itself when frames are late.
  func govern(_ value: EncoderRestrictions, fallback effort: EncodingEffort?) {
    fallback.store(-1, ordering: .relaxed)
    if restrictions.withLock({ $0 != value }) { setRestrictions(value) }
    fallback.store(effort?.rawValue ?? -1, ordering: .releasing)
    governed.store(true, ordering: .relaxed)
  }

  /// Returns the restrictions with the lesser effort, once; nil if none was named.
  func takeFallback() -> EncoderRestrictions? {
    let effort = fallback.exchange(-1, ordering: .acquiring)
    guard effort >= 0 else { return nil }
    fallen.store(effort, ordering: .relaxed)
    return restrictions.withLock {
      $0.effort = EncodingEffort(rawValue: effort)
      return $0
    }
  }

  /// Returns the effort that the encode stage has taken by itself since the last call.
  func takeFallen() -> EncodingEffort? {
    guard fallen.load(ordering: .relaxed) >= 0 else { return nil }
    let effort = fallen.exchange(-1, ordering: .relaxed)
    return effort < 0 ? nil : EncodingEffort(rawValue: effort)
  }
}
