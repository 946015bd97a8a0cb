package import Media
import Synchronization

/// The requests to the encoder, from any thread to the encode stage.
package final class EncoderRequests: Sendable {
  private let keyFrame = Atomic(false)
  /// The requested bitrate in bits a second; 0 for the encoder's own.
  private let bitrate = Atomic(0)
  /// The bits a second that the viewers' networks take; 0 for no limit.
  private let network = Atomic(0)
  /// `true` if either has changed.
  private let isRateNew = Atomic(false)
  private let wanted = Atomic(true)
  private let isRestricted = Atomic(false)
  private let restrictions = Mutex(EncoderRestrictions())
  private let governed = Atomic(false)
  /// The effort that the encode stage takes by itself when frames are late; -1 for none.
  private let fallback = Atomic(-1)
  /// The effort that the encode stage has taken by itself; -1 for none.
  private let fallen = Atomic(-1)
  /// The quality level that the encode stage takes by itself when frames of hardware are late, and the one that it has taken; 0 for
  /// none.
  private let faster = Atomic(0)
  private let fallenQuality = Atomic(0)

  /// Creates requests for nothing.
  package init() {}

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

  /// Notes the encoder's own bitrate, to return to after a limit.
  package func noteBitrate(_ value: Int) {
    bitrate.store(value, ordering: .relaxed)
  }

  /// Requests `value` bits a second, as far as the network takes them.
  package func setBitrate(_ value: Int) {
    bitrate.store(value, ordering: .relaxed)
    isRateNew.store(true, ordering: .releasing)
  }

  /// Requests the present bitrate once more, of an encoder that is new.
  func renewBitrate() { isRateNew.store(true, ordering: .releasing) }

  /// The bits a second that the viewers' networks take; nil for no limit.
  var networkLimit: Int? {
    let value = network.load(ordering: .relaxed)
    return value == 0 ? nil : value
  }

  /// Limits the bitrate to `value` bits a second; nil ends the limit.
  package func setNetworkLimit(_ value: Int?) {
    network.store(value ?? 0, ordering: .relaxed)
    isRateNew.store(true, ordering: .releasing)
  }

  /// Requests restrictions, or the end of them.
  func setRestrictions(_ value: EncoderRestrictions) {
    restrictions.withLock { $0 = value }
    isRestricted.store(true, ordering: .releasing)
  }

  /// Requests restrictions where they differ from those of the last request.
  func updateRestrictions(_ value: EncoderRestrictions) {
    if restrictions.withLock({ $0 != value }) { setRestrictions(value) }
  }

  /// Returns the restrictions of the last request, for an encoder that is new.
  func takeLatestRestrictions() -> EncoderRestrictions {
    // A request that comes meanwhile is carried out once more.
    isRestricted.store(false, ordering: .relaxed)
    return restrictions.withLock { $0 }
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

  /// Returns the bitrate to encode with, if it was changed since the last call.
  package func takeBitrate() -> Int? {
    guard isRateNew.load(ordering: .relaxed), isRateNew.exchange(false, ordering: .acquiring) else { return nil }
    let value = bitrate.load(ordering: .relaxed)
    let least = min(value == 0 ? .max : value, networkLimit ?? .max)
    return least == .max ? nil : least
  }

  /// `true` if a governor chooses the effort or the quality level, and needs the encode times.
  var isGoverned: Bool { governed.load(ordering: .relaxed) }

  /// Requests `value`, as ``setRestrictions(_:)`` does, and names what to take by itself when frames are late: the effort if
  /// software encodes, and the faster quality level if hardware does.
  package func govern(_ value: EncoderRestrictions, fallback effort: EncodingEffort?, faster level: Int? = nil) {
    fallback.store(-1, ordering: .relaxed)
    faster.store(0, ordering: .relaxed)
    updateRestrictions(value)
    fallback.store(effort?.rawValue ?? -1, ordering: .releasing)
    faster.store(level ?? 0, ordering: .releasing)
    governed.store(true, ordering: .relaxed)
  }

  /// Returns the restrictions with the lesser effort, or for hardware with the faster quality level, once; nil if none was
  /// named.
  func takeFallback(ofHardware isHardware: Bool) -> EncoderRestrictions? {
    isHardware ? takeFasterQuality() : takeLesserEffort()
  }

  private func takeLesserEffort() -> EncoderRestrictions? {
    let effort = fallback.exchange(-1, ordering: .acquiring)
    guard effort >= 0 else { return nil }
    fallen.store(effort, ordering: .relaxed)
    return restrictions.withLock {
      $0.effort = EncodingEffort(rawValue: effort)
      return $0
    }
  }

  private func takeFasterQuality() -> EncoderRestrictions? {
    let level = faster.exchange(0, ordering: .acquiring)
    guard level > 0 else { return nil }
    fallenQuality.store(level, ordering: .relaxed)
    return restrictions.withLock {
      $0.vaapiQuality = level
      return $0
    }
  }

  /// Returns the effort that the encode stage has taken by itself since the last call.
  package func takeFallen() -> EncodingEffort? {
    guard fallen.load(ordering: .relaxed) >= 0 else { return nil }
    let effort = fallen.exchange(-1, ordering: .relaxed)
    return effort < 0 ? nil : EncodingEffort(rawValue: effort)
  }

  /// Returns the quality level that the encode stage has taken by itself since the last call.
  package func takeFallenQuality() -> Int? {
    guard fallenQuality.load(ordering: .relaxed) > 0 else { return nil }
    let level = fallenQuality.exchange(0, ordering: .relaxed)
    return level > 0 ? level : nil
  }
}
