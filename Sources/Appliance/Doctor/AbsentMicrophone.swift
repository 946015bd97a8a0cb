package import Capture
package import Serving
import Sound

/// A microphone that the running stream does not have at the moment.
package struct AbsentMicrophone {
  /// The choice in the configuration.
  let choice: CameraSound.Choice
  /// The sound, as the stream reports it.
  let sound: StreamStatus.Sound
  /// The state of the camera, as the stream reports it; nil if the source is no camera.
  let camera: StreamStatus.Camera?
  /// The name of the microphone that this host has for the camera now; nil if the host has none.
  let device: String?
  /// The processes that have that microphone open.
  let holders: [DeviceHolder]
  /// The process of the stream.
  let stream: Int32?
  /// The origin of the stream.
  let origin: StreamOrigin

  /// Creates a judgement of these facts.
  package init(
    choice: CameraSound.Choice, sound: StreamStatus.Sound, camera: StreamStatus.Camera?, device: String?,
    holders: [DeviceHolder], stream: Int32?, origin: StreamOrigin
  ) {
    self.choice = choice
    self.sound = sound
    self.camera = camera
    self.device = device
    self.holders = holders
    self.stream = stream
    self.origin = origin
  }

  /// The time in seconds after which a camera's stream has chosen and opened the microphone.
  private static let searchTime = 5.0

  /// The finding; nil while the camera is away or has just come: the stream may still find a microphone.
  package var finding: Finding? {
    // Before the camera is there, the stream does not know whether it will have a microphone.
    if choice == .auto, sound.name.isEmpty, sound.losses == 0, let camera {
      guard camera.state == "live" else { return nil }
      guard device != nil else { return Finding(.microphone, "no microphone: viewers hear silence") }
      guard camera.seconds >= Self.searchTime else { return nil }
    }
    // The stream waits for the microphone that it had, whichever other one is there.
    let isOther = choice == .auto && !sound.name.isEmpty && device.map { !sound.name.hasSuffix("(\($0))") } == true
    guard let device, !isOther else { return unplugged }
    if !holders.isEmpty, !holders.contains(where: { $0.processID == stream }) {
      return MicrophoneFindings.busy(device, path: nil, holders: holders, stream: stream, status: "")
    }
    return Finding(
      .microphoneLost, "\(device) is there, but the running stream cannot open it; viewers hear silence",
      mends: [origin.soundLog])
  }

  /// The finding if this host does not have the microphone.
  private var unplugged: Finding {
    if case .device(let chosen) = choice, sound.name.isEmpty {
      return MicrophoneFindings.finding(.noDevice(chosen.text), device: chosen.text, node: nil)
    }
    return Finding(
      .microphoneLost,
      "\(sound.name.isEmpty ? "the microphone" : sound.name): lost by the running stream; viewers hear silence",
      mends: [.advice("plug it in again"), .command("nightjar devices")])
  }
}
