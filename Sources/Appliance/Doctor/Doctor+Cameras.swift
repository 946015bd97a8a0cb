import Capture
import Encoding
import Glibc
import Media
import Platform
import Serving

/// The examination of the cameras.
extension Doctor {
  /// A camera under examination.
  private struct Patient {
    let command: CameraConfiguration
    /// The camera's name, if there are several.
    let name: String?
    /// The device node; `nil` if the source is no camera.
    var node: String?
    var trial: CameraTrial.Running?
    /// The format of the pictures, for the trial of the encoder.
    var format: SourceFormat?
    var usb: USBLink?
    /// The status of the running stream that uses the camera already.
    var streamed: StreamStatus?
  }

  func examineCameras(_ configuration: ApplianceConfiguration) {
    if configuration.cameras.contains(where: { $0.encoding.usesHardware }) {
      looking(at: "graphics hardware")
      let nodes =
        Set(configuration.cameras.map(\.encoding.vaapiDevice)).count == 1
        ? configuration.cameras[0].encoding.vaapiDevice : nil
      for finding in HardwareFindings.all(node: nodes) { tell(finding) }
    }
    let isOne = configuration.cameras.count == 1
    var patients = configuration.cameras.map { Patient(command: $0, name: isOne ? nil : $0.name) }
    // All at once, as they are to stream: cameras that share a bus also share its bandwidth.
    for index in patients.indices { begin(&patients[index]) }
    for index in patients.indices {
      looking(at: "camera \(patients[index].command.name)")
      finish(&patients[index])
    }
    // One after the other, each with the processor to itself.
    let waiting = patients.filter { $0.format != nil && $0.streamed == nil }
    for patient in waiting {
      looking(at: "the encoder of \(patient.command.name)")
      let share = max(0.3, min(2, 4 / Double(waiting.count)))
      if let format = patient.format {
        tryEncoder(patient.command, format, patient.name, limit: Duration(seconds: share))
      }
    }
    tellTotal(of: patients.count)
  }

  private func begin(_ patient: inout Patient) {
    let command = patient.command
    if let streamed = running?.camera(command.name, source: command.source) {
      patient.streamed = streamed
      return
    }
    if running?.status.absent.contains(where: { $0.name == command.name }) == true { return }
    switch command.source {
    case .device(let path): patient.node = path
    case .auto: patient.node = CameraList().firstUsable?.path
    case .test, .file: return
    }
    guard let node = patient.node, NodeAccess(path: node).obstacle == nil else { return }
    patient.usb = USBLink(node: node)
    var request = FormatRequest(size: command.size, frameRate: command.frameRate, format: command.pixelFormat)
    request.takesH264 = command.passesThrough
    // Without a thread there is no trial, and later findings say so.
    patient.trial = try? CameraTrial.Running(path: node, request: request)
  }

  private func finish(_ patient: inout Patient) {
    let (command, name) = (patient.command, patient.name)
    if let streamed = patient.streamed { return tellStreamed(streamed, command, name) }
    if let absent = running?.status.absent.first(where: { $0.name == command.name }) {
      // The end of a clip is the expected result.
      if case .file = command.source, command.clipLoops != nil {
        return tell(Finding(.camera, "the running stream has nothing more of it: \(absent.reason)", camera: name))
      }
      return tell(
        Finding(
          .cameraAbsent, "the running stream is without it: \(absent.reason)", camera: name,
          mends: [
            .command("nightjar devices"), .command(controlCommand("reload")),
          ]))
    }
    switch command.source {
    case .test:
      tell(Finding(.camera, "the built-in synthetic camera", camera: name))
      patient.format = synthetic(command)
    case .file(let path): patient.format = examineFile(path, name)
    case .auto where patient.node == nil:
      for entry in CameraList().passedOver {
        if let obstacle = entry.obstacle {
          tell(obstacle.finding(path: entry.path, isWaitedFor: true).about(name))
        }
      }
      tell(
        Finding(
          command.loss.waits ? .cameraAwaited : .cameraNone,
          "there is no camera: \(command.loss.waits ? "a placeholder" : "the built-in synthetic one") is streamed",
          camera: name, mends: [.advice("plug one in"), .command("nightjar devices")]))
      patient.format = synthetic(command)
    case .auto, .device: examineDevice(&patient)
    }
  }

  private func examineDevice(_ patient: inout Patient) {
    guard let node = patient.node else { return }
    let (command, name) = (patient.command, patient.name)
    let waits = command.loss.waits
    if let finding = NodeAccess(path: node).finding(usual: "video") { return tell(finding.about(name)) }
    do {
      guard let trial = try patient.trial?.result() else {
        return tell(
          Finding(
            .cameraUnusable, "the driver of \(node) does not answer", camera: name,
            mends: [patient.usb?.replug, .command("sudo dmesg | tail -n 20")].compactMap { $0 }))
      }
      let others = DeviceHolder.holders(ofDeviceAt: node).filter { $0.processID != getpid() }
      let open = others.isEmpty ? "" : "; also open in \(others.map(\.description).joined(separator: ", "))"
      tell(Finding(.camera, "\(trial.name), \(trial.format.conversion)\(open)", camera: name))
      for finding in patient.usb?.findings ?? [] { tell(finding.about(name)) }
      for finding in trial.findings(path: node, usb: patient.usb) { tell(finding.about(name)) }
      patient.format = trial.format
    } catch CaptureError.busy(_, let holders) where holders.contains(where: { $0.processID == running?.process }) {
      tell(
        Finding(
          .cameraBusy, "\(node) is in use by the running stream, as a camera of another name or source", camera: name,
          mends: [
            .command(controlCommand("status")), .advice("make both the same, then: \(controlCommand("reload"))"),
          ]))
    } catch let error as CaptureError {
      tell(error.finding(path: node, isWaitedFor: waits).about(name))
      if case .noDevice = error { patient.format = synthetic(command) }
    } catch {
      tell(Finding(.cameraUnusable, "\(node): \(error)", camera: name, mends: [.command("nightjar devices")]))
    }
  }

  private func examineFile(_ path: String, _ name: String?) -> SourceFormat? {
    do {
      let file = try Y4MFile(path: path, pacing: .maximum, loops: 1)
      tell(
        Finding(.camera, "\(path): \(file.format.size) at \(file.format.frameRate) pictures a second", camera: name))
      return file.format
    } catch let failure as any Failure {
      let isMissing = failure.kind == .noInput
      tell(
        Finding(
          isMissing ? .cameraMissing : .cameraUnusable, failure.description, camera: name,
          mends: [.command("ls -l \(ShellWord.quoted(path))")]))
    } catch {
      tell(
        Finding(
          .cameraUnusable, "\(path): \(error)", camera: name, mends: [.command("ls -l \(ShellWord.quoted(path))")]))
    }
    return nil
  }

  /// Reports on a camera that a stream uses already: requests figures of the stream, without disturbing it.
  private func tellStreamed(_ first: StreamStatus, _ command: CameraConfiguration, _ name: String?) {
    guard let running, let measured = running.measure(first) else {
      return tell(
        Finding(
          .cameraAbsent, "the running stream no longer reports it", camera: name,
          mends: [.command(controlCommand("status"))]))
    }
    let now = measured.status
    if case .auto = command.source, now.camera == nil {
      return tell(
        Finding(
          .cameraNone, "there is no camera: the running stream has the built-in synthetic one", camera: name,
          mends: [.advice("plug one in, and restart the stream"), .command("nightjar devices")]))
    }
    let source = "\(now.source.name), in the running stream"
    let replug = [Mend.advice("plug it in again"), .command("nightjar devices")]
    let state = now.camera?.state ?? "live"
    let reason = now.camera?.obstacle.map { ": \($0)" } ?? ""
    switch state {
    case "live": tell(Finding(.camera, source, camera: name))
    case "frozen":
      return tell(
        Finding(.cameraFrozen, "\(source): the same picture for \(seconds(now)) s", camera: name, mends: replug))
    case "waiting":
      return tell(Finding(.cameraAwaited, "\(source) waits for it\(reason)", camera: name, mends: replug))
    default:
      return tell(
        Finding(.cameraLost, "\(source): \(state) for \(seconds(now)) s\(reason)", camera: name, mends: replug))
    }
    let rate = PictureCount.Rate(framesPerSecond: measured.framesPerSecond)
    tell(rate.finding(agreed: now.source.fps).about(name))
    guard let load = measured.load else {
      return tell(
        Finding(
          .encoder, "\(now.encoder.name): rests while nobody watches, so its load is unknown", camera: name
        ))
    }
    let headroom = (1 - load) * 100
    // The name of an encoder in software has its preset.
    let level = now.quality?.vaapiQuality.map { ", quality level \($0) of \(now.quality?.vaapiQualityLevels ?? $0)" }
    let left =
      "\(now.encoder.name)\(level ?? ""): headroom \(Int(headroom.rounded())) % of the last "
      + "\(Terminal.decimal(measured.seconds, digits: 1)) s"
    let isHardware = EncoderTrial.isHardware(now.encoder.name)
    let couldChooseLevel =
      isHardware && !command.governsQuality
      && HardwareFindings.offersLevels(ofEncoder: now.encoder.name, node: command.encoding.vaapiDevice)
    tell(
      EncoderTrial.finding(
        left, headroom: headroom, figures: ["headroom_percent": headroom],
        isHEVC: EncoderTrial.isHEVC(now.encoder.name), isHardware: isHardware, couldChooseLevel: couldChooseLevel
      ).about(name))
  }

  private func seconds(_ status: StreamStatus) -> Int { Int((status.camera?.seconds ?? 0).rounded()) }

  /// Returns the format that is encoded if no camera gives one.
  private func synthetic(_ command: CameraConfiguration) -> SourceFormat {
    SourceFormat(
      size: command.size ?? FormatRequest.defaultSize, frameRate: command.frameRate ?? .thirty, pixelFormat: .nv12,
      color: .bt709, conversion: "no copy")
  }

  private func tryEncoder(_ command: CameraConfiguration, _ format: SourceFormat, _ name: String?, limit: Duration) {
    do {
      let selection = try command.encoding.select(
        for: format, command.orientation.initial, payloadLimit: command.payloadLimit, aspects: .one, keepsStandby: false
      )
      let trial = try EncoderTrial(selection.encoder, limit: limit)
      encoders.append(trial)
      let couldChooseLevel = !command.governsQuality && selection.levels?.levels != nil
      tell(trial.finding(couldChooseLevel: couldChooseLevel).about(name))
    } catch {
      tell(
        Finding(
          .encoderMissing, "\(error)", camera: name,
          mends: [
            .advice(
              (command.encoding.codec == .hevc ? "codec = \"h264\"" : "encoder = \"auto\"") + ", or another size"),
            .command("nightjar devices"),
          ]))
    }
  }

  /// Reports if the processor suffices for all cameras together.
  private func tellTotal(of cameras: Int) {
    guard cameras > 1, encoders.count > 1 else { return }
    let processors = sysconf(CInt(_SC_NPROCESSORS_ONLN))
    if let finding = EncoderTrial.total(of: encoders, processors: processors) { tell(finding) }
  }
}
