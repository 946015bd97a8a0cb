import Glibc
import Media
import Platform
import Sound

/// The choice of a stream's microphone.
enum CameraMicrophone {
  /// Returns the source of sound that `sound` requests for a camera that may not be there yet; nil for a stream without
  /// sound.
  ///
  /// - Parameters:
  ///   - pictures: the source of the pictures, whose own microphone is chosen once it is there. Until then there is
  ///     silence.
  ///   - isOneOfSeveral: `true` if other cameras may want the host's microphone as well.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  static func source(
    _ sound: CameraSound, beside pictures: any VideoSource, isOneOfSeveral: Bool
  ) throws(SystemFailure) -> (any SoundSource)? {
    switch sound.choice {
    case .none: return nil
    case .test: return try ToneSource()
    case .device(let name): return try Microphone(.device(name), channels: sound.channels)
    case .auto:
      guard let condition = pictures.condition else { return nil }
      // The devices of a camera that is not there yet are unknown.
      var expectsOwn = true
      if let path = condition.devicePath {
        expectsOwn = sysfs(ofCamera: path).map { SoundCard.isExpected(beside: $0) } ?? false
        // Which one it is, is asked later: ALSA's default may be slow to answer.
        let cards = SoundCard.all()
        let isThere = isOneOfSeveral ? own(of: path, among: cards) != nil : !cards.isEmpty
        guard expectsOwn || isThere else { return nil }
      }
      return try microphone(sound, beside: pictures, isOneOfSeveral: isOneOfSeveral, expectsOwn: expectsOwn)
    }
  }

  /// Returns a microphone that is chosen later: the camera's own as soon as it is there, else the host's default one.
  ///
  /// - Parameter expectsOwn: `true` leaves ``settlingTime`` for the camera's own.
  private static func microphone(
    _ sound: CameraSound, beside pictures: any VideoSource, isOneOfSeveral: Bool, expectsOwn: Bool
  ) throws(SystemFailure) -> Microphone {
    // The camera must be free once its pipeline ends, whatever the thread of the microphone does.
    try Microphone(channels: sound.channels) { [weak pictures] former in
      guard let camera = pictures?.condition, let path = camera.devicePath else { return former }
      // The camera may have come back at another port.
      if let own = selection(.auto, camera: path, isOneOfSeveral: true) { return own }
      if let former { return former }
      guard !isOneOfSeveral, !expectsOwn || Instant.now() - camera.since >= settlingTime else { return nil }
      return selection(.auto, camera: path, isOneOfSeveral: false)
    }
  }

  /// The time after which a camera that was plugged in has all its devices.
  private static let settlingTime = Duration(seconds: 3)

  /// Returns the microphone that `choice` means now; nil for none, and for the test tone.
  ///
  /// - Parameters:
  ///   - camera: the device path of the camera; nil where the source is none, or it is not there yet.
  ///   - isOneOfSeveral: `true` if other cameras may want the host's microphone as well.
  static func selection(
    _ choice: CameraSound.Choice, camera: String?, isOneOfSeveral: Bool
  ) -> Microphone.Selection? {
    switch choice {
    case .none, .test: return nil
    case .device(let name): return .device(name)
    case .auto:
      guard let camera else { return nil }
      let cards = SoundCard.all()
      return (own(of: camera, among: cards) ?? (isOneOfSeveral ? nil : cards.preferred)).map { .card($0) }
    }
  }

  /// Returns the card in the same USB device as the camera at `path`.
  private static func own(of path: String, among cards: [SoundCard]) -> SoundCard? {
    sysfs(ofCamera: path).flatMap { cards.beside(camera: $0) }
  }

  /// The folder of sysfs that shows the camera at `path`, which may be a link.
  static func sysfs(ofCamera path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    let name = String(cString: resolved).split(separator: "/").last ?? ""
    return name.hasPrefix("video") ? "/sys/class/video4linux/\(name)/device" : nil
  }
}
