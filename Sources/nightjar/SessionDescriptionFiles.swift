import Glibc
import Media
import RTP
import Streaming

/// The SDP files of a stream, one for each H.264 destination and each protected one, whose file holds the key and is
/// therefore its owner's alone; rewritten whenever the parameter sets change.
struct SessionDescriptionFiles {
  private let pipeline: Pipeline
  private var files: [File]
  private let sessionID = UInt64(time(nil)) &+ 2_208_988_800  // NTP seconds, as RFC 8866 section 5.2 suggests
  /// Whether nobody asked for them by name: they go with the run.
  let isTemporary: Bool
  /// The directory that was made for them, if one was.
  private let directory: String?

  private struct File {
    let destination: StreamDestination
    let file: OutputFile
    /// The change of the parameter sets that it was written at; nil before the destination is there.
    var written: Int?
  }

  /// Files at `path`, or, where that is nil and H.264 or a protected stream is sent, in the user's runtime directory:
  /// players of these cannot do without.
  ///
  /// - Parameters:
  ///   - wanted: where the stream is to go, in the order of their files, whether it goes there yet or not.
  ///   - name: the camera's, by which the files of several are told apart.
  /// - Throws: ``CommandFailure`` where a file cannot be written.
  init(path: String?, pipeline: Pipeline, wanted: [StreamDestination], name: String) throws {
    self.pipeline = pipeline
    isTemporary = path == nil
    let all = wanted + pipeline.destinations.map(\.destination).filter { !wanted.contains($0) }
    var described = all.filter { $0.payload == .h264 || $0.protection != nil }
    // Asked for by name, a description of the transport stream is better than none.
    if described.isEmpty, path != nil { described = all }
    let (directory, base) = described.isEmpty ? (nil, "") : try path.map { (nil, $0) } ?? Self.temporaryPath(name)
    self.directory = directory
    do {
      files = try described.enumerated().map { number, destination in
        let path = number == 0 ? base : Self.numbered(base, number + 1)
        return File(
          destination: destination, file: try OutputFile(checking: path, isSecret: destination.protection != nil))
      }
    } catch {
      if let directory { rmdir(directory) }
      throw error
    }
  }

  /// The file for a destination.
  func path(of destination: StreamDestination) -> String? {
    files.first { $0.destination == destination }?.file.path
  }

  /// The file that is `other` as well.
  func path(sharedWith other: OutputFile) -> String? {
    files.first { $0.file.isSameFile(as: other) }?.file.path
  }

  /// Writes the files where the parameter sets have changed since the last time, and those of destinations that are there
  /// since.
  mutating func update() throws {
    let changes = pipeline.parameterSets.changes
    guard files.contains(where: { $0.written != changes }) else { return }
    let there = pipeline.destinations
    for index in files.indices where files[index].written != changes {
      guard let entry = there.first(where: { $0.destination == files[index].destination }),
        let description = pipeline.sessionDescription(for: entry.id, sessionID: sessionID)
      else { continue }
      try files[index].file.write(description.text)
      files[index].written = changes
    }
  }

  /// Removes the files that nobody asked for by name, and where there never was a stream to describe also those that
  /// were, unless somebody had them before.
  func remove(neverStreamed: Bool) {
    for entry in files where entry.written != nil {
      if isTemporary || neverStreamed && !entry.file.existed { entry.file.remove() }
    }
    if let directory { rmdir(directory) }
  }

  /// `camera.sdp` → `camera-2.sdp`.
  private static func numbered(_ path: String, _ number: Int) -> String {
    let suffix = ".sdp"
    guard path.hasSuffix(suffix) else { return "\(path)-\(number)" }
    return "\(path.dropLast(suffix.count))-\(number)\(suffix)"
  }

  /// In a directory that only this user may write, so that nobody else's file or link is in the way: the one for the
  /// user's running programs, or a fresh one.
  private static func temporaryPath(_ camera: String) throws -> (directory: String?, path: String) {
    let name = camera == "camera" ? "nightjar-\(getpid()).sdp" : "nightjar-\(getpid())-\(camera).sdp"
    if let runtime = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), runtime.hasPrefix("/"),
      runtime.utf8.count < 1024, access(runtime, W_OK) == 0
    {
      return (nil, "\(runtime)/\(name)")
    }
    var template = Array("/tmp/nightjar-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw CommandFailure(
        kind: .cannotCreate,
        description: "cannot make a directory in /tmp for the session description "
          + "(\(SystemFailure.text(errno))): name a file with --sdp")
    }
    let directory = String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    return (directory, "\(directory)/\(name)")
  }
}
