import Media
import Platform
import Serving
import Sound
import Streaming

/// The counters of one configured camera since it was added, across all its pipelines, and its health.
struct CameraFigures: Sendable {
  let name: String
  /// The running stream; `nil` while nothing streams.
  private(set) var camera: StreamCamera?
  /// The number of times that another pipeline replaced the former one.
  private(set) var restarts = 0
  /// The reason why nothing streams.
  private var absence: String?
  /// The counts of pipelines that have ended.
  private var former = StreamStatistics()
  private var formerPictures = PictureStatistics()
  /// The counts of sound of pipelines that have ended; `nil` if none of them had sound.
  private var formerSound: SoundCounts?
  private var hasBegun = false
  private var watch: ProgressWatch?
  private var places = ViewerPlaces()

  /// The time that a stage may take for one item: ten checks, at one a second.
  static let patience = Duration(seconds: 10)

  /// Creates the figures of a camera that does not stream yet.
  init(name: String) { self.name = name }

  /// Adopts the present stream; `nil` if nothing streams, because of `absence`.
  ///
  /// A pipeline that has ended is counted for the last time here; until then requests for figures read its counters. So
  /// the totals never decrease. Items still on their way in the pipeline are not counted.
  mutating func follow(_ new: StreamCamera?, absence: String?, at now: Instant) {
    self.absence = absence
    guard new?.pipeline !== camera?.pipeline else {
      camera = new
      return
    }
    if let camera {
      var ended = camera.pipeline.counts
      ended.add(former: former)
      former = ended
      formerPictures = pictures(of: camera)
      if let sound = camera.pipeline.sound { formerSound = total(sound.figures) }
    }
    camera = new
    watch = nil
    places = ViewerPlaces()
    guard let new else { return }
    if hasBegun { restarts += 1 }
    hasBegun = true
    watch = ProgressWatch(
      limit: Self.patience, frameInterval: new.pipeline.sourceFormat.frameRate.interval, at: now)
  }

  /// Checks the progress of the stages; called once a second.
  mutating func check(at now: Instant) {
    guard let camera else { return }
    watch?.judge(camera.pipeline.progress, at: now)
    camera.pipeline.sound?.checkProgress()
  }

  /// Returns the totals over all pipelines.
  func statistics() -> StreamStatistics {
    guard let camera else {
      var past = former
      (past.destinations, past.departed) = ([], former.delivered)
      return past
    }
    var statistics = camera.pipeline.counts
    statistics.add(former: former)
    return statistics
  }

  /// Returns the totals of pictures over all pipelines, and the present viewers of pictures.
  func pictures() -> PictureStatistics {
    guard let camera else {
      var past = formerPictures
      past.viewers = []
      return past
    }
    return pictures(of: camera)
  }

  /// The number of clients that take single pictures.
  var snapshotViewers: Int { camera?.snapshots.count() ?? 0 }

  private func pictures(of camera: StreamCamera) -> PictureStatistics {
    var pictures = camera.pipeline.pictureStatistics
    pictures.coded += formerPictures.coded
    pictures.passed += formerPictures.passed
    pictures.skipped += formerPictures.skipped
    return pictures
  }

  /// Returns the totals of sound over all pipelines, and the present figures; `nil` for a camera without sound.
  func sound() -> (counts: SoundCounts, now: SoundFigures?)? {
    // A camera that is away has what it had before.
    guard let camera else { return formerSound.map { ($0, nil) } }
    return camera.pipeline.sound.map(\.figures).map { (total($0), $0) }
  }

  private func total(_ figures: SoundFigures) -> SoundCounts { (formerSound ?? SoundCounts()) + SoundCounts(figures) }

  /// Returns the present destinations, each with a place that no other destination has.
  mutating func placed(_ destinations: [DestinationStatistics]) -> [(place: Int, figures: DestinationStatistics)] {
    places.place(destinations)
  }

  /// Returns the camera's health.
  func health() -> HealthStatus.Camera {
    let (state, reason) = state()
    let sound = (camera?.pipeline.sound?.figures).map { HealthStatus.Sound($0) }
    return HealthStatus.Camera(name: name, state: state, reason: reason, sound: sound)
  }

  private func state() -> (HealthStatus.State, reason: String?) {
    guard let camera else { return (.absent, absence ?? "nothing is streamed") }
    let pipeline = camera.pipeline
    if let stuck = watch?.stuck {
      return (.stuck, "\(stuck.rawValue) stands still: nothing has moved for \(Int(Self.patience.seconds)) s")
    }
    let now = pipeline.counts
    if let condition = now.camera, let state = HealthStatus.State(condition.state) {
      return (state, condition.obstacle ?? state.explanation)
    }
    if camera.isSubstitute {
      return (.absent, "there was no camera at the start: nightjar streams the built-in synthetic one")
    }
    if now.captured == 0 { return (.starting, "no picture has come yet") }
    let isWatched =
      !now.destinations.isEmpty || pipeline.pictureStatistics.watching > 0 || snapshotViewers > 0
    return (isWatched ? .streaming : .idle, nil)
  }
}

extension HealthStatus.Sound {
  /// Creates the state that the figures of a running stream's sound mean.
  init(_ figures: SoundFigures) {
    self =
      if figures.isStuck || figures.condition.isHung {
        .stuck
      } else if !figures.condition.isPresent {
        .absent
      } else if figures.isMuted {
        .muted
      } else {
        figures.digitalSilence >= DigitalSilence.limit ? .silent : .present
      }
  }
}

extension HealthStatus.State {
  /// Creates the problem that a camera state means; `nil` if the camera delivers what it sees.
  fileprivate init?(_ state: CameraState) {
    switch state {
    case .live: return nil
    case .waiting: self = .waiting
    case .disconnected: self = .disconnected
    case .stalled: self = .stalled
    case .failed: self = .failed
    case .frozen: self = .frozen
    }
  }

  fileprivate var explanation: String? {
    switch self {
    case .waiting: "the camera has not appeared yet"
    case .disconnected: "the camera was unplugged"
    case .stalled: "the camera is there and delivers nothing"
    case .failed: "the camera's driver fails, or its signal is another"
    case .frozen: "the camera delivers the same picture again and again"
    case .streaming, .idle, .starting, .stuck, .absent: nil
    }
  }
}

/// The numbers of the viewers, each the lowest that is free. Viewers who join and leave all day use no more numbers
/// than there were viewers at a time.
private struct ViewerPlaces {
  private var holders: [ViewerID?] = []

  mutating func place(_ destinations: [DestinationStatistics]) -> [(place: Int, figures: DestinationStatistics)] {
    let present = Set(destinations.map(\.id))
    for index in holders.indices {
      if let holder = holders[index], !present.contains(holder) { holders[index] = nil }
    }
    return destinations.map { figures in
      if let place = holders.firstIndex(of: figures.id) { return (place, figures) }
      guard let place = holders.firstIndex(of: nil) else {
        holders.append(figures.id)
        return (holders.count - 1, figures)
      }
      holders[place] = figures.id
      return (place, figures)
    }
  }
}
