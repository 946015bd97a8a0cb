/// The microphone's feature unit: mute and volume, which a camera without power forgets (UAC 1.0 section 5.2.2.4).
struct MicrophoneControls {
  /// `true` makes the microphone silent.
  private(set) var isMuted = false
  /// Steps of 1/256 dB.
  private(set) var volume = 0

  private static let volumes = (-24 * 256)...(6 * 256)
  private static let volumeStep = 256
  private static let (muteSelector, volumeSelector) = (1, 2)

  /// Returns the answer to a GET request; nil where it stalls. There is only the master channel.
  func answer(_ request: ClassRequest, selector: Int, channel: Int) -> [UInt8]? {
    guard channel == 0 else { return nil }
    switch (selector, request) {
    case (Self.muteSelector, .current): return [isMuted ? 1 : 0]
    case (Self.volumeSelector, .current): return Self.bytes(volume)
    case (Self.volumeSelector, .minimum): return Self.bytes(Self.volumes.lowerBound)
    case (Self.volumeSelector, .maximum): return Self.bytes(Self.volumes.upperBound)
    case (Self.volumeSelector, .resolution): return Self.bytes(Self.volumeStep)
    default: return nil
    }
  }

  /// Obeys a SET_CUR request; false where it stalls.
  mutating func set(_ bytes: [UInt8], selector: Int, channel: Int) -> Bool {
    switch (selector, bytes.count, channel) {
    case (Self.muteSelector, 1, 0): isMuted = bytes[0] != 0
    case (Self.volumeSelector, 2, 0):
      let value = Int(Int16(truncatingIfNeeded: bytes.number(at: 0, bytes: 2) ?? 0))
      guard Self.volumes.contains(value), value.isMultiple(of: Self.volumeStep) else { return false }
      volume = value
    default: return false
    }
    return true
  }

  private static func bytes(_ value: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(value, bytes: 2)
    return bytes
  }
}
