import Capture
import Encoding
import FrameTracing
import Media
import Streaming
import Synchronization

/// A camera that is open, with an encoder that is prepared for it, and their pipeline that has not begun: what may take
/// its time, and therefore is made on a thread of its own where others stream already.
struct OpenedCamera: Sendable {
  /// The source's name, such as `/dev/video0`.
  let sourceName: String
  let pipeline: Pipeline
  /// Its own settings; nil where it is no camera.
  let controls: CameraControls?
  /// Why this encoder.
  let explanation: String?
  /// What will happen to the encoder.
  let encoderEvents: EncoderEvents?
  /// Where the stream is to go, and of these what it does not go to yet.
  let destinations: [StreamDestination]
  let missing: [StreamDestination]

  /// What a camera is within its box.
  struct Place: Sendable {
    /// Whether viewers may come by RTSP.
    var isServed: Bool
    /// Whether there are others, which a camera that is not there must not hold up.
    var isOneOfSeveral: Bool
    /// Whether destinations that are not there are waited for. Otherwise one has to be there at least, which is what
    /// somebody expects who has mistyped it at a terminal.
    var waitsForDestinations: Bool
    /// Whether it may keep encoders ready that it does not need yet.
    var keepsStandby: Bool
    /// When the program began.
    var started: MediaTime
    /// Whose frames they are in probes and traces.
    var trace: CameraTrace
  }

  /// As ``init(_:in:_:_:)``; every thread that this starts runs where the camera's are to.
  static func open(
    _ command: StreamCommand, in place: Place, _ controls: CameraControls?, _ notes: Notes
  ) throws -> OpenedCamera {
    try command.scheduling.confine { try OpenedCamera(command, in: place, controls, notes) }
  }

  /// Opens what `command` asks for; tells in `notes` what is no reason to stop.
  ///
  /// - Parameter controls: what looks after the camera's controls; nil where no camera is asked for.
  /// - Throws: a `Failure`; then nothing is open.
  private init(_ command: StreamCommand, in place: Place, _ controls: CameraControls?, _ notes: Notes) throws {
    let orientation = command.orientation.initial
    let source = try Self.source(command, fixed: command.turns ? nil : orientation, place, controls, notes)
    // A substitute for a camera has none.
    self.controls = source is SyntheticCamera ? nil : controls
    // Of a camera another may come, whose samples mean something else.
    let isExchangeable = command.adapts || command.source.isCamera
    let aspects: EncoderAspects = command.turns ? .both : isExchangeable ? .scaled : .one
    let without = command.scheduling.without
    let keepsStandby = place.keepsStandby && !command.encoding.noStandby && !without.contains(.standby)
    let selection = try command.encoding.select(
      for: source.format, orientation, payloadLimit: command.payloadLimit,
      streamsSlices: command.pacing == 0 && !without.contains(.slices),
      aspects: aspects, keepsStandby: keepsStandby)
    if let offer = selection.turning { source.leaveTurning(to: offer) }
    destinations = command.destinations(in: place)
    pipeline = try Pipeline(
      source: source, encoder: selection.encoder, destinations: [],
      keyFrameInterval: command.encoding.settings.clockedKeyFrameInterval, orientation: orientation,
      pacing: command.pacing,
      restsUnwatched: place.isServed && !command.serving.alwaysEncodes, without: without, trace: place.trace,
      realTime: command.scheduling.realTime, started: place.started)
    if command.turns, keepsStandby {
      do {
        try source.prepareTurning()
      } catch {
        // Without it the stream goes on, and it is tried again when the picture turns.
        notes.warn("the picture may not turn: \(error)")
      }
    }
    missing = try Self.add(
      destinations, to: pipeline, waits: place.waitsForDestinations || command.survival.waits)
    sourceName = source.name
    explanation = selection.explanation
    encoderEvents = selection.events
  }

  /// Sends the stream to those of `destinations` that are there; returns the others, to be looked for.
  ///
  /// - Parameter waits: whether the stream begins without any of them. Then no name server is asked here, so that nothing
  ///   else waits for one.
  /// - Throws: what `Pipeline.add` throws where it will not pass, or where there is none to begin with.
  private static func add(
    _ destinations: [StreamDestination], to pipeline: Pipeline, waits: Bool
  ) throws -> [StreamDestination] {
    var missing: [(destination: StreamDestination, error: StreamDestinationError?)] = []
    for destination in destinations {
      if waits, destination.hasName {
        missing.append((destination, nil))
        continue
      }
      do {
        try pipeline.add(destination)
      } catch let error as StreamDestinationError where error.mayPass {
        missing.append((destination, error))
      }
    }
    if !waits, pipeline.destinations.isEmpty, let error = missing.lazy.compactMap(\.error).first { throw error }
    return missing.map(\.destination)
  }

  /// - Parameter fixed: how pictures are laid, where that is not going to change.
  private static func source(
    _ command: StreamCommand, fixed: Orientation?, _ place: Place, _ controls: CameraControls?, _ notes: Notes
  ) throws -> any VideoSource {
    var request = FormatRequest(size: command.size, frameRate: command.fps, format: command.format.value)
    request.memory = command.scheduling.frameMemory
    var survival = command.survival
    // The others are not to wait for it.
    if place.isOneOfSeveral, survival.onLoss == .placeholder { survival.waits = true }
    let opening = CameraOpening(request: request, survival: survival, fixed: fixed, controls: controls)
    switch command.source {
    case .device(let path): return try opening.open(.path(path), path, notes)
    case .file(let path):
      return try Y4MFile(path: path, pacing: command.rate ?? .realtime, loops: command.loop, memory: request.memory)
    case .test:
      return try SyntheticCamera(size: request.size, frameRate: request.frameRate, memory: request.memory)
    case .auto:
      let cameras = CameraList()
      for entry in cameras.passedOver {
        if let complaint = entry.complaint { notes.warn("skipped \(complaint)") }
      }
      if let camera = cameras.firstUsable { return try opening.open(.first, camera.path, notes) }
      if survival.waits { return try opening.open(.first, nil, notes) }
      let finding = cameras.passedOver.isEmpty ? "no camera found" : "no camera can be used"
      guard command.format.value == nil else {
        throw CommandFailure(
          kind: .noInput, description: "\(finding), and --format is for cameras only; plug one in, or leave it out")
      }
      notes.add("\(finding): streaming the built-in synthetic camera")
      if command.settings.areGiven { notes.warn("the synthetic camera has no controls to set") }
      return try SyntheticCamera(size: request.size, frameRate: request.frameRate, memory: request.memory)
    }
  }
}

/// The options whose values `nightjar ctl` has changed.
final class ControlledOptions: Sendable {
  private let names = Mutex<Set<String>>([])

  /// One was changed. From any thread.
  func add(_ option: String) { names.withLock { _ = $0.insert(option) } }

  /// Those that were changed since the last call.
  func take() -> Set<String> {
    names.withLock { names in
      defer { names = [] }
      return names
    }
  }
}

extension StreamCommand {
  /// Where the stream goes: to this machine, where nobody says and nobody can come by himself.
  func destinations(in place: OpenedCamera.Place) -> [StreamDestination] {
    guard destinations.isEmpty, !place.isServed, !place.isOneOfSeveral else { return destinations }
    return [
      StreamDestination(host: "127.0.0.1", port: 5004, payload: .h264),
      StreamDestination(host: "127.0.0.1", port: 5006, payload: .mp2t),
    ]
  }

  /// Whether the picture may turn while it streams.
  var turns: Bool { orientation.orientation == .auto || control != "none" }
}

/// How a camera is opened, or waited for.
private struct CameraOpening {
  let request: FormatRequest
  let survival: SurvivalOptions
  let fixed: Orientation?
  let controls: CameraControls?

  /// - Parameter path: where it is now; nil where there is none.
  func open(_ selection: CameraSelection, _ path: String?, _ notes: Notes) throws -> any VideoSource {
    let finder = CameraFinder(selection, request: request, fixedOrientation: fixed, controls: controls)
    do {
      guard let path else { throw CaptureError.noDevice(path: "camera") }
      let camera = try finder.open(path)
      for warning in camera.warnings { notes.warn("\(warning)") }
      return try ReconnectingCamera(
        camera, finder: finder, survival: survival.cameras, pictures: controls?.pictures)
    } catch  where survival.waits {
      // One without the size that was asked for, or without memory for its buffers, is waited for as one that is not
      // there: another may be plugged in, and memory becomes free.
      notes.warn(path == nil ? "no camera yet: waiting for one" : "no camera yet: \(error)")
      var relaxed = request
      // The stream has its size and rate before it knows what the camera has.
      relaxed.isSizeExplicit = false
      relaxed.isRateExplicit = false
      let format = SourceFormat(
        size: request.size, frameRate: request.frameRate, pixelFormat: .nv12, color: .bt709, conversion: "placeholder",
        turnsApart: true)
      return try ReconnectingCamera(
        waitingFor: path ?? "the first camera", format: format,
        finder: CameraFinder(selection, request: relaxed, fixedOrientation: fixed, controls: controls),
        pictures: controls?.pictures)
    }
  }
}
