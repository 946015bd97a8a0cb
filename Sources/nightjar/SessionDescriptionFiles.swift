import Glibc
import Media
import RTP
import Streaming

/// The SDP files of a stream, one for each H.264 destination, rewritten whenever the parameter sets change.
struct SessionDescriptionFiles {
  private let pipeline: Pipeline
  private let files: [(index: Int, file: OutputFile)]
  private let sessionID = UInt64(time(nil)) &+ 2_208_988_800  // NTP seconds, as RFC 8866 section 5.2 suggests
  private let isTemporary: Bool
  private var written: Int?

  /// Files at `path`, or, where that is nil and H.264 is streamed, in the user's runtime directory: players of H.264
  /// cannot do without.
  ///
  /// - Throws: ``CommandFailure`` where a file cannot be written.
  init(path: String?, pipeline: Pipeline) throws {
    self.pipeline = pipeline
    isTemporary = path == nil
    var described = pipeline.destinations.indices.filter { pipeline.destinations[$0].destination.payload == .h264 }
    // Asked for by name, a description of the transport stream is better than none.
    if described.isEmpty, path != nil { described = Array(pipeline.destinations.indices) }
    let base = described.isEmpty ? "" : try path ?? Self.temporaryPath()
    files = try described.enumerated().map { number, index in
      (index, try OutputFile(checking: number == 0 ? base : Self.numbered(base, number + 1)))
    }
  }

  /// The file for a destination.
  func path(of index: Int) -> String? {
    files.first { $0.index == index }?.file.path
  }

  /// Writes the files where the parameter sets have changed since the last time.
  mutating func update() throws {
    let changes = pipeline.parameterSets.changes
    guard written != changes else { return }
    for (index, file) in files {
      guard let description = pipeline.sessionDescription(forDestination: index, sessionID: sessionID) else { continue }
      try file.write(description.text)
    }
    written = changes
  }

  /// Removes the files that nobody asked for by name; all of them where there never was a stream to describe.
  func removeTemporary(neverStreamed: Bool) {
    guard isTemporary || neverStreamed else { return }
    for (_, file) in files { file.remove() }
  }

  /// `camera.sdp` → `camera-2.sdp`.
  private static func numbered(_ path: String, _ number: Int) -> String {
    let suffix = ".sdp"
    guard path.hasSuffix(suffix) else { return "\(path)-\(number)" }
    return "\(path.dropLast(suffix.count))-\(number)\(suffix)"
  }

  /// In a directory that only this user may write, so that nobody else's file or link is in the way.
  private static func temporaryPath() throws -> String {
    let name = "nightjar-\(getpid()).sdp"
    if let runtime = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), runtime.hasPrefix("/"),
      runtime.utf8.count < 1024, access(runtime, W_OK) == 0
    {
      return "\(runtime)/\(name)"
    }
    let directory = "/tmp/nightjar-\(getuid())"
    var status = stat()
    guard mkdir(directory, 0o700) == 0 || errno == EEXIST, lstat(directory, &status) == 0,
      status.st_mode & S_IFMT == S_IFDIR, status.st_uid == getuid(), status.st_mode & 0o022 == 0
    else {
      throw CommandFailure(
        kind: .cannotCreate,
        description: "cannot use \(directory) for the session description: name a file with --sdp")
    }
    return "\(directory)/\(name)"
  }
}
