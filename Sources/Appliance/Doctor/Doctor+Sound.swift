import Capture
import Platform
import Serving
import Sound

/// The examination of the sound.
extension Doctor {
  /// A microphone under examination.
  private struct Patient {
    let device: SoundDeviceName
    /// The name by which `--audio` takes it.
    let stableName: String
    let card: SoundCard?
    let node: SoundNode?
    let camera: String?
    var trial: MicrophoneTrial.Running?

    /// The microphone's name, for people.
    var name: String { card.map { "\($0.name) (\(stableName))" } ?? stableName }
  }

  /// Examines the microphones of all cameras, together, as they are to stream.
  func examineSound(_ configuration: ApplianceConfiguration) {
    let patients = configuration.cameras.compactMap { begin($0, configuration) }
    guard !patients.isEmpty else { return }
    looking(at: "sound")
    for patient in patients { finish(patient) }
  }

  /// Starts the trial of a camera's microphone; returns nil where there is nothing to try, and tells why.
  private func begin(_ command: CameraConfiguration, _ configuration: ApplianceConfiguration) -> Patient? {
    let (choice, isOne) = (command.sound.choice, configuration.cameras.count == 1)
    let name = isOne ? nil : command.name
    guard choice != .none else { return nil }
    if let streamed = running?.camera(command.name, source: command.source) {
      tellStreamed(streamed, command, name, in: configuration)
      return nil
    }
    if running?.status.absent.contains(where: { $0.name == command.name }) == true { return nil }
    guard choice != .test else {
      tell(Finding(.microphone, "a test tone, at the beginning of each second", camera: name))
      return nil
    }
    let node = microphoneNode(of: command, in: configuration)
    let closed = node.map(MicrophoneFindings.access) ?? []
    guard closed.isEmpty else {
      for finding in closed { tell(finding.about(name)) }
      return nil
    }
    guard var patient = microphone(of: command, in: configuration, node, name) else {
      if command.source.isCamera { tell(Finding(.microphone, "no microphone: the stream has no sound", camera: name)) }
      return nil
    }
    // Without a thread there is no trial, and the finding says so.
    patient.trial = try? MicrophoneTrial.Running(
      patient.device, channels: command.sound.channels, card: patient.card)
    return patient
  }

  private func microphone(
    of command: CameraConfiguration, in configuration: ApplianceConfiguration, _ node: SoundNode?, _ camera: String?
  ) -> Patient? {
    switch selection(of: command, in: configuration) {
    case nil: return nil
    case .device(let device):
      return Patient(
        device: device, stableName: device.text, card: SoundCard.all().named(device), node: node, camera: camera)
    case .card(let card):
      return Patient(device: card.device, stableName: card.stableName, card: card, node: node, camera: camera)
    }
  }

  /// Returns the microphone that a stream of the camera would take now; nil for none.
  ///
  /// - Parameter streamed: the status of the running stream that uses the camera already; nil if none does.
  private func selection(
    of command: CameraConfiguration, in configuration: ApplianceConfiguration, streamed: StreamStatus? = nil
  ) -> Microphone.Selection? {
    CameraMicrophone.selection(
      command.sound.choice, camera: streamed?.camera?.device ?? cameraNode(of: command),
      isOneOfSeveral: configuration.cameras.count > 1)
  }

  private func cameraNode(of command: CameraConfiguration) -> String? {
    switch command.source {
    case .device(let path): path
    case .auto: CameraList().firstUsable?.path
    case .test, .file: nil
    }
  }

  /// Returns the node of a camera's microphone, also of one that this user may not open; nil where there is none.
  ///
  /// - Parameter streamed: the status of the running stream that uses the camera already; nil if none does.
  func microphoneNode(
    of command: CameraConfiguration, in configuration: ApplianceConfiguration, streamed: StreamStatus? = nil
  ) -> SoundNode? {
    switch command.sound.choice {
    case .none, .test: return nil
    case .device(let device): return SoundNode.all().named(device)
    case .auto:
      guard let camera = streamed?.camera?.device ?? cameraNode(of: command) else { return nil }
      let nodes = SoundNode.all()
      let own = CameraMicrophone.sysfs(ofCamera: camera).flatMap { nodes.beside(camera: $0) }
      return own ?? (configuration.cameras.count > 1 ? nil : nodes.preferred)
    }
  }

  private func finish(_ patient: Patient) {
    do throws(SoundError) {
      guard let trial = try patient.trial?.result() else {
        return tell(
          Finding(
            .microphoneUnusable, "the driver of \(patient.stableName) does not answer", camera: patient.camera,
            mends: [
              .advice("unplug the microphone and plug it in again"), .command("sudo dmesg | tail -n 20"),
            ]))
      }
      let findings = MicrophoneFindings.findings(
        patient.name, "\(trial.recording.format)", level: trial.recording.level, card: patient.card?.id,
        listening: MicrophoneFindings.listening(to: patient.stableName), controls: trial.controls)
      for finding in findings { tell(finding.about(patient.camera)) }
    } catch {
      let finding = MicrophoneFindings.finding(
        error, device: patient.stableName, node: patient.node, stream: running?.process,
        status: controlCommand("status"))
      tell(finding.about(patient.camera))
    }
  }

  /// Reports on the sound of a camera that a stream uses already: requests its level of the stream.
  private func tellStreamed(
    _ first: StreamStatus, _ command: CameraConfiguration, _ camera: String?, in configuration: ApplianceConfiguration
  ) {
    guard let before = first.sound else { return tellSoundless(first, command, camera, in: configuration) }
    // A stream that no longer answers has a finding of its own.
    guard let status = running?.measure(first)?.status, let now = status.sound else { return }
    let source = now.name.isEmpty ? "the microphone" : now.name
    guard now.present else { return tellAbsent(now, of: status, command, camera, in: configuration) }
    guard !now.muted else {
      let unmute = controlCommand("audio unmute", camera: command.name)
      return tell(Finding(.microphone, "\(source), in the running stream: muted (\(unmute))", camera: camera))
    }
    // The tone pauses.
    guard command.sound.choice != .test else {
      return tell(Finding(.microphone, "\(source), in the running stream", camera: camera))
    }
    // A pause between two words is no silence of the microphone.
    let louder = now.loudestPeakDbfs > before.loudestPeakDbfs ? now : before
    let card = card(of: command, in: configuration)
    let findings = MicrophoneFindings.findings(
      source, "in the running stream", level: SoundLevel(rms: louder.loudestRmsDbfs, peak: louder.loudestPeakDbfs),
      silence: now.digitalSilenceSeconds, card: card?.id,
      listening: .command(controlCommand("audio", camera: command.name)),
      controls: card.map { RecordingControl.all(ofCard: $0.number) } ?? [])
    for finding in findings { tell(finding.about(camera)) }
  }

  /// Reports on a stream without sound, although the configuration asks for it.
  private func tellSoundless(
    _ stream: StreamStatus, _ command: CameraConfiguration, _ camera: String?, in configuration: ApplianceConfiguration
  ) {
    guard command.sound.choice == .auto else {
      return tell(
        Finding(
          .microphoneLost, "the running stream has no sound, and the configuration asks for it", camera: camera,
          mends: [.command(controlCommand("reload"))]))
    }
    guard command.source.isCamera else { return }
    var microphone: String?
    // Without the camera, nobody knows which microphone belongs to it.
    if stream.camera.map({ $0.state == "live" }) ?? true,
      case .card(let card) = selection(of: command, in: configuration, streamed: stream)
    {
      microphone = "\(card.name) (\(card.stableName))"
    }
    tell(MicrophoneFindings.soundless(microphone, origin).about(camera))
  }

  private func card(of command: CameraConfiguration, in configuration: ApplianceConfiguration) -> SoundCard? {
    switch selection(of: command, in: configuration) {
    case nil: nil
    case .device(let device): SoundCard.all().named(device)
    case .card(let card): card
    }
  }

  /// Reports on a microphone that the running stream does not have: another program may have it.
  private func tellAbsent(
    _ sound: StreamStatus.Sound, of now: StreamStatus, _ command: CameraConfiguration, _ camera: String?,
    in configuration: ApplianceConfiguration
  ) {
    let node = microphoneNode(of: command, in: configuration, streamed: now)
    let microphone = AbsentMicrophone(
      choice: command.sound.choice, sound: sound, camera: now.camera, device: node?.stableName,
      holders: node.map { DeviceHolder.holders(ofDeviceAt: $0.path) } ?? [], stream: running?.process,
      origin: origin)
    if let finding = microphone.finding { tell(finding.about(camera)) }
  }
}
