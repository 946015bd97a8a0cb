public import Media

/// A picture of the stream as JPEG, for whoever asked for one.
public struct LivePicture: Sendable {
  /// A whole JPEG.
  public let bytes: [UInt8]
  /// When its frame became available, on `CLOCK_MONOTONIC`.
  public let captured: MediaTime
  /// Whether it takes the place of a picture that the camera does not deliver.
  public let isPlaceholder: Bool
}

/// Why there is no picture.
public enum PictureError: Failure, Hashable {
  /// So many look already.
  case tooMany(limit: Int)
  /// None came in time.
  case noPicture
  /// The stream has ended, or the viewer.
  case ended

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .tooMany(let limit):
      "\(limit) viewers look at this camera's JPEG pictures already: try again later, or watch by RTSP"
    case .noPicture: "the camera gave no picture in time: nightjar ctl status says how it is"
    case .ended: "the camera's stream has ended: try again"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .tooMany, .noPicture: .temporary
    case .ended: .unavailable
    }
  }
}

/// What happened to pictures for those who look at JPEG.
public struct PictureStatistics: Hashable, Sendable {
  /// JPEGs that were made.
  public var coded = 0
  /// JPEGs of the camera's own that were handed on as they are.
  public var passed = 0
  /// Frames that were not taken although somebody waited, because the picture before was not ready.
  public var skipped = 0
  /// Who looks now, in the order of their coming.
  public var viewers: [PictureViewerStatistics] = []

  /// Nothing yet.
  public init() {}
}

/// One who looks at JPEG pictures.
public struct PictureViewerStatistics: Hashable, Sendable {
  /// What tells it from the pipeline's others who do.
  public let id: UInt64
  /// Who it is, for a person.
  public let name: String
  /// How it is connected; nil where nobody has said.
  public let peer: ViewerPeer?
  /// Whether it wants one picture alone.
  public let isSnapshot: Bool
  /// Pictures that were sent to it.
  public var pictures = 0
  /// Their bytes.
  public var bytes = 0
}

/// One who looks at a pipeline's pictures, as long as it is held.
public final class PictureViewer: Sendable {
  private let stage: PictureStage
  private let id: UInt64
  private let since: MediaTime

  fileprivate init(_ stage: PictureStage, _ name: String, peer: ViewerPeer?, isSnapshot: Bool) throws {
    self.stage = stage
    // Before it is admitted: a camera's own pictures are kept from then on.
    id = try stage.admit(name, peer: peer, isSnapshot: isSnapshot)
    since = .now()
  }

  deinit {
    stage.dismiss(id)
  }

  /// The next picture: one that was taken after the viewer came, and of which it has not got any yet. Of those that are
  /// not asked for in time none are kept. One call at a time.
  ///
  /// - Throws: ``PictureError``, `ConversionError`; ``PictureError/ended`` too where the task is cancelled.
  public func next(until deadline: MediaTime) async throws -> LivePicture {
    try await stage.next(for: id, since: since, until: deadline)
  }

  /// Notes that it has got a picture of so many bytes.
  public func noteSent(_ bytes: Int) { stage.noteSent(bytes, to: id) }
}

extension Pipeline {
  /// Begins to make JPEG pictures for one who looks, as viewers see them: turned, scaled, placeholders too. They are made
  /// whether anybody watches by RTP or not, and only as many as are asked for.
  ///
  /// - Parameters:
  ///   - name: who it is, for a person.
  ///   - peer: how it is connected.
  ///   - isSnapshot: whether it wants one alone.
  /// - Throws: ``PictureError``, `SystemFailure` where the system has no thread left.
  public func look(_ name: String, peer: ViewerPeer? = nil, isSnapshot: Bool = false) throws -> PictureViewer {
    try PictureViewer(pictureStage, name, peer: peer, isSnapshot: isSnapshot)
  }

  /// What happened to JPEG pictures so far, and who looks at them.
  public var pictureStatistics: PictureStatistics { pictureStage.statistics }
}
