import Capture
import Encoding
import Media
import Platform
import Sound
import Streaming
import Synchronization

/// An open camera, an encoder that is prepared for the camera, and their pipeline, which does not run yet. All of these
/// may take their time, so they are made on a thread of their own if other cameras already stream.
struct OpenedCamera: Sendable {
  /// The source's name, such as `/dev/video0`.
  let sourceName: String
  let pipeline: Pipeline
  /// The camera's own controls; `nil` if the source is no camera.
  let controls: CameraControls?
  /// The reason for the choice of this encoder.
  let explanation: String?
  /// The source of the encoder's events.
  let encoderEvents: EncoderEvents?
  /// The same of the encoder of small pictures.
  let smallEncoderEvents: EncoderEvents
  /// The quality levels of the encoding hardware; `nil` without hardware.
  let levels: HardwareLevels?
  /// The stream's configured destinations, and in `missing` those that the stream does not reach yet.
  let destinations: [StreamDestination]
  let missing: [StreamDestination]

  /// The conditions under which a camera is opened in its appliance.
  struct Place: Sendable {
    var circumstances: CameraCircumstances
    /// `true` if the stream waits for missing destinations. Otherwise at least one has to be reachable, so that a
    /// mistyped destination on a terminal fails at once.
    var waitsForDestinations: Bool
    /// `true` if the camera may keep standby encoders prepared.
    var keepsStandby: Bool
    /// The time at which the program began.
    var started: Instant
    /// The camera's identity in probes and traces.
    var trace: CameraTrace
  }

  /// Opens a camera like ``init(_:in:_:_:tell:)``. Every thread that this call starts runs on the processors configured
  /// for the camera.
  static func open(
    _ command: CameraConfiguration, in place: Place, _ controls: CameraControls?, _ notes: Notes,
    tell: () -> Void = {}
  ) throws -> OpenedCamera {
    try command.scheduling.confine { try OpenedCamera(command, in: place, controls, notes, tell: tell) }
  }

  /// Opens the camera that `command` requests; notes in `notes` what does not prevent streaming.
  ///
  /// - Parameters:
  ///   - controls: the object that manages the camera's controls; `nil` if no camera is requested.
  ///   - tell: shows `notes` before a longer wait.
  /// - Throws: a `Failure`; then nothing is open.
  private init(
    _ command: CameraConfiguration, in place: Place, _ controls: CameraControls?, _ notes: Notes, tell: () -> Void
  ) throws {
    let orientation = command.orientation.initial
    let fixed = command.turns(in: place.circumstances) ? nil : orientation
    let link =
      !command.passesThrough
      ? nil
      : controls.map { controls in
        // A driver may rotate pictures before they are coded, if they rotate never again.
        PassThrough(needsSamples: fixed == nil && orientation != .upright) { controls.code($0) }
      }
    let source = try Self.source(command, fixed: fixed, place, controls, link, notes)
    // A substitute for a camera has no controls.
    self.controls = source is SyntheticCamera ? nil : controls
    // Another camera may take this one's place, whose samples mean something else.
    let isExchangeable =
      command.adapts || command.governsEffort || command.governsQuality || command.source.isCamera
    let aspects: EncoderAspects = command.turns(in: place.circumstances) ? .both : isExchangeable ? .scaled : .one
    let without = command.scheduling.without
    let keepsStandby = place.keepsStandby && !command.encoding.noStandby && !without.contains(.standby)
    let selection = try command.encoding.select(
      for: source.format, orientation, payloadLimit: command.payloadLimit,
      streamsSlices: command.pacing == 0 && !without.contains(.slices),
      aspects: aspects, keepsStandby: keepsStandby, isBaselineNeeded: place.circumstances.servesBrowsers)
    if let offer = selection.turning { source.leaveTurning(to: offer) }
    destinations = command.destinations(in: place.circumstances)
    let sound = try CameraMicrophone.source(
      command.sound, beside: source, isOneOfSeveral: place.circumstances.isOneOfSeveral)
    let encoder = link.map { link in
      PassThroughEncoder(
        selection.encoder, size: source.format.size,
        profile: command.encoding.profile(isBaselineNeeded: place.circumstances.servesBrowsers), link: link)
    }
    let smallEvents = EncoderEvents()
    let isHardware = EncoderSelector.softwareCodec(ofEncoder: selection.encoder.name) == nil
    pipeline = try Pipeline(
      source: source, encoder: encoder ?? selection.encoder, destinations: [],
      sound: sound.map { ($0, command.sound.settings(detector: command.detection.sound)) },
      keyFrameInterval: command.encoding.settings.clockedKeyFrameInterval, orientation: orientation,
      pacing: command.pacing,
      restsUnwatched: place.circumstances.isServed && !command.alwaysEncodes, sending: command.scheduling.sending,
      trace: place.trace,
      realTime: command.scheduling.priority, isPunctual: command.scheduling.isPunctual,
      started: place.started, movement: command.detection.movementSettings,
      smallEncoder: { [encoding = command.encoding, health = selection.health] in
        try encoding.selectSmall($0, health: health, events: smallEvents, isBesideHardware: isHardware)
      }, h264: command.encoding.h264Plan(beside: selection.encoder.configuration))
    pipeline.setBitrateFloor(command.encoding.networkFloor)
    if command.turns(in: place.circumstances), keepsStandby {
      do {
        try source.prepareTurning()
      } catch {
        // Without the standby encoder the stream goes on, and another attempt follows when the picture rotates.
        notes.warn("the picture may not rotate: \(error)")
      }
    }
    missing = try Self.add(
      destinations, to: pipeline, waits: place.waitsForDestinations || command.loss.waits, notes, tell: tell)
    sourceName = source.name
    explanation = link == nil ? selection.explanation : "beside the camera's own H.264, which is passed on"
    (encoderEvents, smallEncoderEvents, levels) = (selection.events, smallEvents, selection.levels)
  }

  /// The lookup of a host name, which may take its time.
  private typealias Lookup = BlockingCall<SocketAddress, StreamDestinationError>
  /// The wait for a name server before the stream begins without the destination.
  private static let namePatience = Duration(seconds: 2)

  /// Adds the reachable ones of `destinations` to the pipeline. Returns the others, which are searched for later.
  ///
  /// - Parameters:
  ///   - waits: `true` if the stream begins without any destination. Then this function asks no name server, so that
  ///     nothing else waits for one. Otherwise a silent name server is waited for only while there is no other
  ///     destination.
  ///   - tell: shows `notes` before a longer wait.
  /// - Throws: the errors of `Pipeline.add` for a destination that the pipeline refuses, or if there is none to begin
  ///   with.
  private static func add(
    _ destinations: [StreamDestination], to pipeline: Pipeline, waits: Bool, _ notes: Notes, tell: () -> Void
  ) throws -> [StreamDestination] {
    var missing: [(destination: StreamDestination, error: StreamDestinationError?)] = []
    func add(_ destination: StreamDestination, at address: Result<SocketAddress, StreamDestinationError>?) throws {
      do {
        try pipeline.add(destination, at: address?.get())
      } catch let error as StreamDestinationError where error.mayPass {
        missing.append((destination, error))
      }
    }
    // All names at once.
    var lookups: [(destination: StreamDestination, lookup: Lookup?)] = []
    for destination in destinations {
      var lookup: Lookup?
      if !waits, destination.hasName {
        lookup = try Lookup("nj-resolve") { () throws(StreamDestinationError) in
          try SocketAddress(host: destination.host, port: destination.port)
        }
      }
      lookups.append((destination, lookup))
    }
    var unanswered: [(destination: StreamDestination, lookup: Lookup)] = []
    let patience = Instant.now() + namePatience
    for (destination, lookup) in lookups {
      if let lookup {
        if let address = lookup.result(by: patience) {
          try add(destination, at: address)
        } else {
          notes.warn("no answer yet about the host '\(destination.host)'; nightjar goes on asking")
          unanswered.append((destination, lookup))
        }
      } else if destination.hasName {
        missing.append((destination, nil))
      } else {
        try add(destination, at: nil)
      }
    }
    if !unanswered.isEmpty { tell() }
    while pipeline.destinations.isEmpty, !unanswered.isEmpty {
      for (index, (destination, lookup)) in unanswered.enumerated().reversed() {
        guard let address = lookup.result(by: Instant.now() + Duration.milliseconds(100)) else { continue }
        unanswered.remove(at: index)
        try add(destination, at: address)
      }
    }
    for (destination, _) in unanswered { missing.append((destination, nil)) }
    if !waits, pipeline.destinations.isEmpty, let error = missing.lazy.compactMap(\.error).first { throw error }
    return missing.map(\.destination)
  }

  /// - Parameter fixed: the orientation of the pictures, if it cannot change.
  private static func source(
    _ command: CameraConfiguration, fixed: Orientation?, _ place: Place, _ controls: CameraControls?,
    _ link: PassThrough?, _ notes: Notes
  ) throws -> any VideoSource {
    var request = FormatRequest(
      size: command.size, frameRate: command.frameRate,
      format: command.pixelFormat == .h264 ? nil : command.pixelFormat)
    request.memory = command.scheduling.frameMemory
    var loss = command.loss
    // The other cameras must not wait for this one.
    if place.circumstances.isOneOfSeveral, loss.reaction == .placeholder { loss.waits = true }
    let opening = CameraOpening(request: request, loss: loss, fixed: fixed, controls: controls, link: link)
    switch command.source {
    case .device(let path): return try opening.open(.path(path), path, notes)
    case .file(let path):
      return try Y4MFile(
        path: path, pacing: command.clipPacing ?? .realtime, loops: command.clipLoops, memory: request.memory)
    case .test:
      return try SyntheticCamera(
        size: request.size, frameRate: request.frameRate, memory: request.memory, flash: command.sound.flash)
    case .auto:
      let cameras = CameraList()
      for entry in cameras.passedOver {
        if let complaint = entry.complaint { notes.warn("skipped \(complaint)") }
      }
      if let camera = cameras.firstUsable { return try opening.open(.first, camera.path, notes) }
      if loss.waits { return try opening.open(.first, nil, notes) }
      let finding = cameras.passedOver.isEmpty ? "no camera found" : "no camera can be used"
      guard command.pixelFormat == nil else {
        throw ApplianceFailure(
          kind: .noInput, description: "\(finding), and --format is for cameras only; plug one in, or leave it out")
      }
      notes.add("\(finding): streaming the built-in synthetic camera")
      if command.controls.areGiven { notes.warn("the synthetic camera has no controls to set") }
      return try SyntheticCamera(
        size: request.size, frameRate: request.frameRate, memory: request.memory, flash: command.sound.flash)
    }
  }
}

/// The settings that `nightjar ctl` has changed.
final class ControlledSettings: Sendable {
  private let changes = Mutex<Set<CameraChange>>([])
  private let sound = Mutex(SoundControl())

  private struct SoundControl {
    var isMuted = false
    /// The stage of the present stream.
    weak var stage: SoundStage?
  }

  /// Mutes the present stream's sound, and that of each stream that follows. A mute survives a reload: muted people
  /// expect to stay unheard. Any thread may call it.
  func mute(_ isMuted: Bool) {
    // Under one lock with `follow`: a stream that begins meanwhile is muted too.
    sound.withLock {
      $0.isMuted = isMuted
      $0.stage?.mute(isMuted)
    }
  }

  /// `true` if streams are muted.
  var isMuted: Bool { sound.withLock { $0.isMuted } }

  /// Takes a new stream's stage, which is muted where the former one was; nil for a stream without sound.
  func follow(_ stage: SoundStage?) {
    sound.withLock {
      stage?.mute($0.isMuted)
      $0.stage = stage
    }
  }

  /// Adds a setting that was changed. Any thread may call it.
  func add(_ setting: CameraSetting) { changes.withLock { _ = $0.insert(.setting(setting)) } }

  /// Returns the changes since the last call.
  func take() -> Set<CameraChange> {
    changes.withLock { changes in
      defer { changes = [] }
      return changes
    }
  }
}

extension CameraConfiguration {
  /// Returns the stream's destinations. The default is this host if no destination is configured and no viewer can
  /// connect.
  func destinations(in circumstances: CameraCircumstances) -> [StreamDestination] {
    guard destinations.isEmpty, !circumstances.isServed, !circumstances.isOneOfSeveral else { return destinations }
    return [
      StreamDestination(host: "127.0.0.1", port: 5004, payload: .h264),
      StreamDestination(host: "127.0.0.1", port: 5006, payload: .mp2t),
    ]
  }

  /// `true` if the picture may rotate while it streams.
  func turns(in circumstances: CameraCircumstances) -> Bool { orientation.choice == .auto || circumstances.hasControl }
}

/// The parameters for opening a camera, or for waiting for one.
private struct CameraOpening {
  let request: FormatRequest
  let loss: CameraLoss
  let fixed: Orientation?
  let controls: CameraControls?
  let link: PassThrough?

  /// - Parameter path: the camera's present device path; `nil` if there is none.
  func open(_ selection: CameraSelection, _ path: String?, _ notes: Notes) throws -> any VideoSource {
    let finder = finder(selection, request)
    do {
      guard let path else { throw CaptureError.noDevice(path: "camera") }
      let camera = try finder.open(path)
      for warning in camera.warnings { notes.warn("\(warning)") }
      return passing(
        try ReconnectingCamera(
          camera, finder: finder, survival: loss.survival, pictures: controls?.pictures))
    } catch  where loss.waits {
      // A camera without the requested size, or without memory for its buffers, is waited for like a missing one:
      // another camera may be plugged in, and memory may become free.
      notes.warn(path == nil ? "no camera yet: waiting for one" : "no camera yet: \(error)")
      var relaxed = request
      // The stream has its size and rate before the camera's formats are known.
      relaxed.isSizeExplicit = false
      relaxed.isRateExplicit = false
      let format = SourceFormat(
        size: request.size, frameRate: request.frameRate, pixelFormat: .nv12, color: .bt709, conversion: "placeholder",
        turnsApart: true)
      return passing(
        try ReconnectingCamera(
          waitingFor: path ?? "the first camera", format: format, finder: self.finder(selection, relaxed),
          pictures: controls?.pictures))
    }
  }

  private func finder(_ selection: CameraSelection, _ request: FormatRequest) -> CameraFinder {
    let finder = CameraFinder(selection, request: request, fixedOrientation: fixed, controls: controls)
    finder.passThrough = link
    return finder
  }

  /// Returns `camera`, whose own H.264 is passed on if there is a link for that.
  private func passing(_ camera: ReconnectingCamera<CameraFinder>) -> ReconnectingCamera<CameraFinder> {
    if let link { camera.passOn(by: link) }
    return camera
  }
}
