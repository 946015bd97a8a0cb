package import Capture
import Platform
package import Serving
import Streaming

/// A camera's own controls, as the control API sees them.
extension StreamCamera {
  func controls() async throws -> CameraControlsAnswer {
    let controls = try settable()
    return CameraControlsAnswer(try await controls.list(), controls.status)
  }

  func changeControls(_ values: [(name: String, value: String?)]) async throws -> CameraControlsAnswer {
    let controls = try settable()
    controlled.add(.controls)
    return CameraControlsAnswer(try await controls.change(values), controls.status)
  }

  func lockSensor(_ isLocked: Bool) async throws -> CameraControlsAnswer {
    let controls = try settable()
    controlled.add(.sensorLock)
    return CameraControlsAnswer(try await controls.lockSensor(isLocked), controls.status)
  }

  private func settable() throws(ApplianceFailure) -> CameraControls {
    guard let cameraControls else {
      throw ApplianceFailure(kind: .unavailable, description: "the source is not a camera, and has no controls")
    }
    return cameraControls
  }
}

/// A stream's sound, as the control API sees it.
extension StreamCamera {
  func sound() throws -> StreamStatus.Sound { StreamStatus.Sound(try audible().figures) }

  func changeSound(muted: Bool?, gain: Double?) throws -> StreamStatus.Sound {
    let stage = try audible()
    if let muted { controlled.mute(muted) }
    if let gain {
      stage.setGain(gain)
      controlled.add(.audioGain)
    }
    return StreamStatus.Sound(stage.figures)
  }

  private func audible() throws(ControlFailure) -> SoundStage {
    guard let sound = pipeline.sound else { throw ControlFailure.noSound(name) }
    return sound
  }
}

extension CameraControlsAnswer {
  init(_ entries: [CameraControls.Entry], _ status: CameraControls.Status) {
    self.init(sensorLock: status.sensorLock, night: status.isNight, controls: entries.map(Control.init))
  }
}

extension CameraControlsAnswer.Control {
  /// Creates the API's form of a control.
  package init(_ entry: CameraControls.Entry) {
    let control = entry.control
    self.init(
      name: control.name, title: control.title, type: control.kind.rawValue, value: control.value,
      default: control.defaultValue, minimum: control.minimum, maximum: control.maximum, step: control.step,
      menu: control.items.isEmpty
        ? nil : control.items.map { CameraControlsAnswer.Item(value: $0.index, text: $0.text) },
      flags: control.flags.names, setBy: entry.origin, inactivity: entry.inactivity?.description)
  }
}

extension StreamStatus.Controls {
  init(_ status: CameraControls.Status) {
    self.init(
      sensorLock: status.sensorLock, night: status.isNight, brightness: status.brightness,
      complaints: status.complaints)
  }
}
