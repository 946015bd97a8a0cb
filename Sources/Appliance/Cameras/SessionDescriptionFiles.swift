import Glibc
import Platform
import RTP
import Streaming

/// The SDP files of a stream, one for each destination of H.264 or HEVC and each protected one. The file of a protected
/// destination holds the key, so only its owner may read it. The files are rewritten whenever the parameter sets
/// change.
struct SessionDescriptionFiles {
  private let pipeline: Pipeline
  private var files: [File]
  private let sessionID = SessionDescription.presentSessionID()
  /// `true` if no path was configured. Then the files are removed at the end of the run.
  let isTemporary: Bool
  /// The directory that was created for the files, if one was.
  private let directory: String?

  private struct File {
    let destination: StreamDestination
    let file: OutputFile
    /// The number of the change that the file was written at; `nil` before the destination exists.
    var written: Int?
  }

  /// Creates files at `path`. If `path` is `nil` and H.264, HEVC or a protected stream is sent, creates them in the
  /// user's runtime directory, because players of these streams need a description.
  ///
  /// - Parameters:
  ///   - wanted: the configured destinations in the order of their files, including missing ones.
  ///   - name: the camera's name, which distinguishes the files of several cameras.
  /// - Throws: ``ApplianceFailure`` if a file cannot be written.
  init(path: String?, pipeline: Pipeline, wanted: [StreamDestination], name: String) throws {
    self.pipeline = pipeline
    isTemporary = path == nil
    let all = wanted + pipeline.destinations.map(\.destination).filter { !wanted.contains($0) }
    var described = all.filter { $0.payload.needsDescription || $0.protection != nil }
    // With a configured path, a description of the transport stream is better than none.
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

  /// Returns the path of the file for a destination.
  func path(of destination: StreamDestination) -> String? {
    files.first { $0.destination == destination }?.file.path
  }

  /// Returns the path of the file that is the same as `other`.
  func path(sharedWith other: OutputFile) -> String? {
    files.first { $0.file.isSameFile(as: other) }?.file.path
  }

  /// Writes the files if their descriptions have changed since the last call, and the files of new destinations.
  mutating func update() throws {
    let changes = pipeline.descriptionChanges
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

  /// Removes the temporary files. If the stream never existed, also removes the files of a configured path, except
  /// those that existed before.
  func remove(neverStreamed: Bool) {
    for entry in files where entry.written != nil {
      if isTemporary || neverStreamed && !entry.file.existed { entry.file.remove() }
    }
    if let directory { rmdir(directory) }
  }

  /// Returns `camera-2.sdp` for `camera.sdp`.
  private static func numbered(_ path: String, _ number: Int) -> String {
    let suffix = ".sdp"
    guard path.hasSuffix(suffix) else { return "\(path)-\(number)" }
    return "\(path.dropLast(suffix.count))-\(number)\(suffix)"
  }

  /// Returns a path in a directory that only this user may write, so that no other user's file or link is in the way:
  /// the directory for the user's running programs, or a new one.
  private static func temporaryPath(_ camera: String) throws -> (directory: String?, path: String) {
    let name = camera == "camera" ? "nightjar-\(getpid()).sdp" : "nightjar-\(getpid())-\(camera).sdp"
    if let runtime = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), runtime.hasPrefix("/"),
      runtime.utf8.count < 1024, access(runtime, W_OK) == 0
    {
      return (nil, "\(runtime)/\(name)")
    }
    var template = Array("/tmp/nightjar-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw ApplianceFailure(
        kind: .cannotCreate,
        description: "cannot make a directory in /tmp for the session description "
          + "(\(SystemFailure.text(errno))): name a file with --sdp")
    }
    let directory = String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    return (directory, "\(directory)/\(name)")
  }
}
