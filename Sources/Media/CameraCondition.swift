import Synchronization

/// How a camera that may come and go is.
public enum CameraState: String, CaseIterable, Hashable, Sendable {
  /// It delivers.
  case live
  /// It has not been there yet.
  case waiting
  /// It was unplugged.
  case disconnected
  /// It is there, but has stopped to deliver.
  case stalled
  /// Its driver fails, or the signal at its input is another.
  case failed
  /// It delivers the same picture again and again, bit for bit.
  case frozen

  /// Whether its own pictures are streamed.
  public var delivers: Bool { self == .live || self == .frozen }
}

/// How a camera is, and how often it was lost.
public struct CameraCondition: Hashable, Sendable {
  /// Whether it delivers, and if not, why.
  public var state: CameraState
  /// Since when, on `CLOCK_MONOTONIC`. For a camera that is lost: since its last picture.
  public var since: MediaTime
  /// How often it was lost.
  public var losses = 0
  /// How often it was opened again.
  public var reopenings = 0
  /// What the samples of its pictures mean, of the last camera that was there; nil before one was.
  public var color: ColorDescription?
  /// Pictures that were streamed in place of its own.
  public var placeholderFrames = 0
  /// Why it cannot be opened although it is there; nil where it is not, or where nothing is wrong.
  public var obstacle: String?

  /// A camera that is so since then, and never was lost.
  public init(_ state: CameraState, since: MediaTime) {
    self.state = state
    self.since = since
  }
}

/// What happened to the camera of a running stream, one line for the person at the terminal.
public enum CameraEvent: Hashable, Sendable, CustomStringConvertible {
  /// It delivers no longer.
  case lost(reason: String)
  /// It delivers again, or for the first time.
  case found(name: String, isFirst: Bool, after: MediaTime)
  /// It is there, but cannot be opened.
  case refused(reason: String)
  /// It delivers pictures of another size than the stream's.
  case scaled(from: PictureSize, to: PictureSize)
  /// Not a bit of its picture has changed for so long.
  case frozen(since: String, for: MediaTime)
  /// Its picture changes again.
  case thawed(after: MediaTime)
  /// Its controls were set for another reason than that somebody asked.
  case controls(String)
  /// Something odd that ends nothing.
  case warning(String)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .lost(let reason): "camera lost: \(reason); a placeholder goes on in its place"
    case .found(let name, let isFirst, let time):
      "camera is \(isFirst ? "there" : "back") after \(time.tenths) s: \(name)"
    case .refused(let reason): "camera not opened: \(reason); it is tried again"
    case .scaled(let size, let target): "the camera delivers \(size) now, scaled to the stream's \(target)"
    case .frozen(let since, let time):
      "picture frozen since \(since): not a bit of it has changed for \(time.tenths) s; look at the camera"
    case .thawed(let time): "picture moves again after \(time.tenths) s"
    case .controls(let text): text
    case .warning(let text): "warning: \(text)"
    }
  }

  /// Whether somebody ought to look into it.
  public var isWarning: Bool {
    switch self {
    case .found, .thawed, .controls: false
    case .lost, .refused, .scaled, .frozen, .warning: true
    }
  }
}

/// The events of one camera, from the threads on which they happen to whoever shows them.
public final class CameraEvents: Sendable {
  private let waiting = Mutex<[CameraEvent]>([])

  /// The most events that wait; what happens meanwhile is in the counters alone.
  public static let limit = 64

  /// A list without events.
  public init() {}

  /// Takes what happened since the last call, oldest first.
  public func take() -> [CameraEvent] {
    waiting.withLock { waiting in
      defer { waiting.removeAll() }
      return waiting
    }
  }

  /// Adds `event`, from any thread. Where ``limit`` wait already it is let go.
  public func add(_ event: CameraEvent) {
    waiting.withLock { if $0.count < Self.limit { $0.append(event) } }
  }
}

extension MediaTime {
  /// Seconds to the tenth, such as `3.2`.
  fileprivate var tenths: String {
    let tenths = (max(0, nanoseconds) + 50_000_000) / 100_000_000
    return "\(tenths / 10).\(tenths % 10)"
  }
}
