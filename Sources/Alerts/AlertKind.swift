/// The kind of an alert. The raw value is its name in files, answers and commands.
package enum AlertKind: String, CaseIterable, Codable, Hashable, Sendable {
  /// The room is louder than its own background.
  case noise
  /// The noise has the harmonics and the rhythm of crying.
  case crying
  /// Something moves in the picture.
  case movement
  /// The camera is away, or delivers nothing.
  case cameraLost = "camera-lost"
  /// The camera delivers the same picture again and again.
  case cameraFrozen = "camera-frozen"
  /// The picture is black: no light, or something covers the lens.
  case cameraDark = "camera-dark"
  /// The microphone is away or hangs, or the thread of the sound stands still.
  case microphoneLost = "microphone-lost"
  /// The microphone delivers nothing but digital silence.
  case microphoneSilent = "microphone-silent"
  /// The encoder of the hardware has failed, and software encodes.
  case encoderFailedOver = "encoder-failed-over"
  /// The host is too hot.
  case tooHot = "too-hot"
  /// A viewer has lost its network.
  case viewerLost = "viewer-lost"
  /// The file system of the history is full.
  case diskFull = "disk-full"

  /// The kind in words, for people.
  package var title: String {
    switch self {
    case .noise: "noise"
    case .crying: "probably crying"
    case .movement: "movement"
    case .cameraLost: "camera lost"
    case .cameraFrozen: "camera frozen"
    case .cameraDark: "camera dark or covered"
    case .microphoneLost: "microphone lost"
    case .microphoneSilent: "microphone silent"
    case .encoderFailedOver: "encoder failed over"
    case .tooHot: "too hot"
    case .viewerLost: "viewer's network lost"
    case .diskFull: "disk full"
    }
  }
}
