import Control
import Media
import Streaming

/// What one camera of the configuration has done since it came into it, by however many pipelines, and how it is.
struct CameraFigures: Sendable {
  let name: String
  /// What streams; nil while nothing does.
  private(set) var camera: StreamCamera?
  /// Times that another pipeline took the place of one.
  private(set) var restarts = 0
  /// Why nothing streams.
  private var absence: String?
  /// What the pipelines have counted that are gone.
  private var former = StreamStatistics()
  private var formerPictures = PictureStatistics()
  private var hasBegun = false
  private var watch: ProgressWatch?
  private var places = ViewerPlaces()

  /// How long a stage may be with one thing: ten looks, of which there is one a second.
  static let patience = MediaTime(seconds: 10)

  /// One that streams nothing yet.
  init(name: String) { self.name = name }

  /// Goes on with what streams now; nil is nothing, for that reason.
  ///
  /// A pipeline that has gone is counted for the last time here, and by the one who asks for figures: so what is told
  /// never falls. What is still on its way in it is not counted.
  mutating func follow(_ new: StreamCamera?, absence: String?, at now: MediaTime) {
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

  /// Looks whether its stages go on; once a second.
  mutating func look(at now: MediaTime) {
    guard let camera else { return }
    watch?.look(camera.pipeline.progress, at: now)
  }

  /// What it has done in all.
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

  /// What pictures it has made in all, and who looks at them now.
  func pictures() -> PictureStatistics {
    guard let camera else {
      var past = formerPictures
      past.viewers = []
      return past
    }
    return pictures(of: camera)
  }

  private func pictures(of camera: StreamCamera) -> PictureStatistics {
    var pictures = camera.pipeline.pictureStatistics
    pictures.coded += formerPictures.coded
    pictures.passed += formerPictures.passed
    pictures.skipped += formerPictures.skipped
    return pictures
  }

  /// The destinations of now, each with a place that no other has.
  mutating func placed(_ destinations: [DestinationStatistics]) -> [(place: Int, figures: DestinationStatistics)] {
    places.place(destinations)
  }

  /// How it is.
  func health() -> HealthStatus.Camera {
    let (state, reason) = state()
    return HealthStatus.Camera(name: name, state: state, reason: reason)
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
      return (.absent, "no camera was found at the start: the built-in synthetic one is streamed in its place")
    }
    if now.captured == 0 { return (.starting, "no picture has come yet") }
    let isWatched = !now.destinations.isEmpty || pipeline.pictureStatistics.viewers.contains { !$0.isSnapshot }
    return (isWatched ? .streaming : .idle, nil)
  }
}

extension HealthStatus.State {
  /// What is amiss with a camera; nil where it delivers what it sees.
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
    case .waiting: "the camera has not been there yet"
    case .disconnected: "the camera was unplugged"
    case .stalled: "the camera is there and delivers nothing"
    case .failed: "the camera's driver fails, or its signal is another"
    case .frozen: "the camera delivers the same picture again and again"
    case .streaming, .idle, .starting, .stuck, .absent: nil
    }
  }
}

/// Which viewer has which number, the lowest that is free: so viewers who come and go all day leave no more numbers behind
/// than there ever were at a time.
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
