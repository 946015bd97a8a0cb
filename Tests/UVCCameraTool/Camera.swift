import CLinux
import Glibc
import Media
import Platform

/// The camera: answers the host's requests and the test's commands, on one thread.
final class Camera {
  private let port: Int
  private let source: PictureSource
  private let log: HandoverLog?
  private let slowness: Int
  private let tone: Int?
  private let descriptors: USBDescriptors
  private let commands: CommandSocket
  private var link: USBIPLink?
  private var controls = CameraControls()
  private var coding = CodingUnit()
  private var negotiation: StreamNegotiation
  private var stream: PictureStream
  private var microphone: MicrophoneStream?
  /// `bRequestErrorCode` of the last request.
  private var lastError: UInt8 = 0

  /// - Parameters:
  ///   - tone: The tone that its microphone hears, in Hz; nil for a camera without one.
  ///   - slowness: Of its clock, in millionths.
  init(
    identity: CameraIdentity, source: PictureSource, tone: Int?, log: HandoverLog?, slowness: Int, port: Int,
    commands: CommandSocket
  ) {
    self.port = port
    self.commands = commands
    self.source = source
    self.log = log
    self.slowness = slowness
    self.tone = tone
    descriptors = USBDescriptors(identity: identity, formats: source.formats, hasMicrophone: tone != nil)
    negotiation = StreamNegotiation(formats: source.formats)
    stream = PictureStream(source: source, log: log, slowness: slowness)
  }

  /// Gives the camera power: nothing is left of what was set before.
  func plug() throws(CameraToolError) {
    guard link == nil else { throw .alreadyPlugged }
    controls = CameraControls()
    coding = CodingUnit()
    negotiation = StreamNegotiation(formats: source.formats)
    stream = PictureStream(source: source, log: log, slowness: slowness)
    microphone = tone.map { MicrophoneStream(frequency: $0, slowness: slowness) }
    lastError = 0
    // The kernel needs a moment to let the port go after an unplug.
    let limit = Instant.now() + Duration(seconds: 5)
    while true {
      do throws(CameraToolError) {
        link = try USBIPLink(port: port)
        return
      } catch {
        guard case .system(_, errorNumber: EBUSY) = error, Instant.now() < limit else { throw error }
        usleep(2000)
      }
    }
  }

  /// Never comes back.
  func run() -> Never {
    while true {
      let (isCommanded, isRequested) = wait()
      if isCommanded { commands.serve { answer($0) } }
      guard let link else { continue }
      let isThere = !isRequested || link.receive { command in handle(command, over: link) }
      if !isThere || !stream.run(at: .now(), over: link, controls: &controls)
        || microphone?.run(at: .now(), over: link) == false
      {
        unplug()
      }
    }
  }

  /// Waits for the test, the host, or the next picture's time.
  private func wait() -> (isCommanded: Bool, isRequested: Bool) {
    let descriptors = (link.map { [$0.descriptor] } ?? []) + commands.descriptors
    var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let deadline = link == nil ? nil : [stream.deadline, microphone?.deadline].compactMap(\.self).min()
    let timeout = deadline.map { max(0, $0.nanoseconds - Instant.now().nanoseconds) } ?? -1
    guard nightjar_poll(&polled, UInt32(polled.count), timeout) > 0 else { return (false, false) }
    let isRequested = link != nil && polled[0].revents != 0
    return (polled.dropFirst(link == nil ? 0 : 1).contains { $0.revents != 0 }, isRequested)
  }

  private func unplug() {
    link = nil
    stream.stop()
    microphone?.stop()
  }

  // MARK: - The host

  private func handle(_ command: USBIPLink.Command, over link: USBIPLink) {
    switch command {
    case .bulkIn(let sequence, let endpoint, let capacity):
      if endpoint == USBDescriptors.Number.endpoint {
        stream.add(sequence, capacity: capacity)
      } else {
        _ = link.complete(sequence, status: -EPIPE)
      }
    case .isochronousIn(let transfer): microphone?.add(transfer, at: .now())
    case .unlink(let sequence, let other):
      let wasPending = stream.remove(other) || microphone?.remove(other) == true
      _ = link.unlinked(sequence, wasPending: wasPending)
    case .control(let sequence, let setup, let data):
      guard let answer = answer(setup, data) else {
        _ = link.complete(sequence, status: -EPIPE)
        return
      }
      if setup.type & 0x80 == 0 {
        _ = link.complete(sequence, taken: data.count)
      } else {
        _ = link.complete(sequence, answer.prefix(setup.length))
      }
    }
  }

  /// Returns the answer to a control transfer, nothing for one to the device; nil where it stalls.
  private func answer(_ setup: SetupPacket, _ data: [UInt8]) -> [UInt8]? {
    if setup.type & 0x60 == 0 { return answerStandard(setup) }
    guard setup.type & 0x7f == 0x21, let request = ClassRequest(rawValue: setup.request) else { return nil }
    let (unit, interface, selector) = (setup.index >> 8, setup.index & 0xff, setup.value >> 8)
    if interface == USBDescriptors.Number.soundControlInterface {
      guard unit == MicrophoneDescriptors.featureUnit else { return nil }
      let channel = setup.value & 0xff
      guard request == .set else { return microphone?.answer(request, selector: selector, channel: channel) }
      return microphone?.set(data, selector: selector, channel: channel) == true ? [] : nil
    }
    // VC_REQUEST_ERROR_CODE_CONTROL.
    if interface == USBDescriptors.Number.controlInterface, unit == 0, selector == 2, request == .current {
      return [lastError]
    }
    do throws(RequestError) {
      lastError = 0
      if interface == USBDescriptors.Number.streamingInterface {
        return try answerStreaming(request, selector: selector, data)
      }
      if unit == CodingUnit.number {
        guard request == .set else { return try coding.answer(request, selector: selector) }
        if try coding.set(data, selector: selector) { source.requestKeyFrame() }
        return []
      }
      guard request == .set else { return try controls.answer(request, unit: unit, selector: selector) }
      try controls.set(data, unit: unit, selector: selector)
      return []
    } catch {
      lastError = error.rawValue
      return nil
    }
  }

  private func answerStreaming(
    _ request: ClassRequest, selector: Int, _ data: [UInt8]
  ) throws(RequestError) -> [UInt8] {
    guard request == .set else { return try negotiation.answer(request, selector: selector) }
    if try negotiation.set(data, selector: selector), let setting = negotiation.committed {
      stream.start(setting, at: .now())
    }
    return []
  }

  /// USB 3.2 section 9.4.
  private func answerStandard(_ setup: SetupPacket) -> [UInt8]? {
    switch setup.request {
    case 0: return [0, 0]
    case 1:
      // Clearing the halt of the bulk endpoint is how hosts say that they have had enough.
      if setup.type == 0x02, setup.index & 0x0f == USBDescriptors.Number.endpoint { stream.stop() }
      return []
    case 6:
      switch setup.value >> 8 {
      case 1: return descriptors.device
      case 2: return descriptors.configuration
      case 3: return descriptors.text(setup.value & 0xff)
      case 15: return descriptors.objectStore
      default: return nil
      }
    case 8: return [1]
    case 10: return [0]
    case 11:
      if setup.index == USBDescriptors.Number.soundStreamingInterface {
        setup.value == 0 ? microphone?.stop() : microphone?.start(at: .now())
      }
      return []
    // Features, configuration, exit latencies, isochronous delay: taken, and without effect here.
    case 3, 9, 0x30, 0x31: return []
    default: return nil
    }
  }

  // MARK: - The test

  private func answer(_ line: String) -> String {
    do throws(CameraToolError) {
      return try obey(line)
    } catch {
      return "error: \(error)"
    }
  }

  private func obey(_ line: String) throws(CameraToolError) -> String {
    let words = line.split(separator: " ")
    let count = words.count > 1 ? Int(words[1]) : nil
    switch (words.first, words.count) {
    case ("state", 1): return state
    case ("plug", 1): try plug()
    case ("unplug", 1):
      guard link != nil else { throw .notPlugged }
      unplug()
    case ("stall", 1): stream.fault = .stalled
    case ("freeze", 1): stream.fault = .frozen
    case ("rate-drop", 1): stream.isDark = true
    case ("resume", 1):
      stream.resume(at: .now())
    case ("corrupt", 2...3):
      let damage = words.count == 3 ? JPEGDamage(rawValue: String(words[2])) : nil
      guard let count, count >= 0, (damage == nil) == (words.count == 2) else { throw .unknownCommand(line) }
      stream.damagesLeft = count
      stream.damage = damage
    case ("short", 2):
      guard let count, count >= 0 else { throw .unknownCommand(line) }
      stream.shortsLeft = count
    default: throw .unknownCommand(line)
    }
    return "ok"
  }

  /// JSON, on one line.
  private var state: String {
    let setting = stream.setting
    let format = setting.map { "\"\($0.format.coding.name) \($0.format.width)x\($0.format.height)\"" } ?? "null"
    let sound = microphone.map {
      "{\"listening\":\($0.isListenedTo),\"packets\":\($0.packetsSent),\"lost\":\($0.packetsLost)}"
    }
    let values = CameraControls.all.map { "\"\($0.name)\":\(controls.values[$0.name] ?? 0)" }.joined(separator: ",")
    return "{\"plugged\":\(link != nil),\"streaming\":\(setting != nil),\"format\":\(format),"
      + "\"interval\":\(setting?.interval ?? 0),\"fault\":\"\(stream.fault.rawValue)\",\"dark\":\(stream.isDark),"
      + "\"number\":\(stream.number),\"frames\":\(stream.framesSent),\"late\":\(stream.framesLate),"
      + "\"corrupted\":\(stream.framesDamaged),\"shortened\":\(stream.framesShortened),"
      + "\"key_frame_requests\":\(coding.keyFrameRequests),\"bitrate\":\(coding.bitrate),"
      + "\"last_picture_type\":\(coding.lastPictureType),"
      + "\"sound\":\(sound ?? "null"),\"controls\":{\(values)}}"
  }
}
