import Glibc
import Platform
import Synchronization

/// The pictures of before and after the alerts: JPEG files beside the history, or in memory where the history is.
///
/// The room is bounded: the pictures of the oldest alerts make room for new ones. Only the user that runs the program can
/// read the files.
package final class AlertPictures: Sendable {
  /// The moment that a picture shows.
  package enum Moment: String, CaseIterable, Codable, Hashable, Sendable {
    /// Before the alert began.
    case before
    /// Seconds after the alert was told.
    case after
  }

  /// A place of a picture.
  private struct Key: Hashable {
    let id: UInt64
    let moment: Moment
  }

  private struct Entry {
    let count: Int
    /// The picture; nil if it is in a file.
    let bytes: [UInt8]?
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    var total = 0

    /// Removes the pictures that `isMeant` selects, and returns their places.
    mutating func remove(where isMeant: (Key) -> Bool) -> [Key] {
      let meant = entries.keys.filter(isMeant)
      for key in meant { total -= entries.removeValue(forKey: key)?.count ?? 0 }
      return meant
    }
  }

  /// The most bytes of all files.
  package static let limit = 64 << 20
  /// The most bytes of all pictures in memory.
  package static let memoryLimit = 4 << 20
  /// The most bytes of one picture.
  package static let pictureLimit = 2 << 20

  /// The folder of the files; nil for pictures in memory.
  package let directory: String?
  private let room: Int
  private let state: Mutex<State>

  /// Creates a store, with the files of `directory` that belong to events of `known`. Other pictures there are removed: their
  /// events are gone, or a crash came before they were told.
  ///
  /// - Parameter room: the most bytes; nil for the default.
  package init(directory: String? = nil, known: ClosedRange<UInt64>? = nil, room: Int? = nil) {
    self.directory = directory
    self.room = room ?? (directory == nil ? Self.memoryLimit : Self.limit)
    var state = State()
    if let directory {
      var removed: [String] = []
      Directory.forEachName(in: directory) { name in
        guard let (key, isWhole) = Self.key(of: name) else { return }
        var status = stat()
        guard isWhole, known?.contains(key.id) == true, lstat("\(directory)/\(name)", &status) == 0, status.st_size > 0,
          status.st_size <= Self.pictureLimit
        else { return removed.append(name) }
        state.entries[key] = Entry(count: Int(status.st_size), bytes: nil)
        state.total += Int(status.st_size)
      }
      for name in removed { unlink("\(directory)/\(name)") }
    }
    self.state = Mutex(state)
    makeRoom(for: 0)
  }

  /// Returns the place of the file `name`, and `false` for one that was not written to its end; nil for another's file.
  private static func key(of name: String) -> (Key, isWhole: Bool)? {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard (2...3).contains(parts.count), parts[1] == "jpg", parts.count == 2 || parts[2] == "new" else { return nil }
    let words = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard words.count == 2, let id = UInt64(words[0]), "\(id)" == words[0],
      let moment = Moment(rawValue: String(words[1]))
    else { return nil }
    return (Key(id: id, moment: moment), parts.count == 2)
  }

  private static func name(_ key: Key) -> String { "\(key.id)-\(key.moment.rawValue).jpg" }

  /// Stores a picture of the alert that began with the event `id`. Waits for the file system; where that refuses, or the
  /// picture is too large, there is no picture. One thread at a time calls it.
  package func store(_ picture: [UInt8], _ moment: Moment, of id: UInt64) {
    guard !picture.isEmpty, picture.count <= min(Self.pictureLimit, room) else { return }
    let key = Key(id: id, moment: moment)
    makeRoom(for: picture.count)
    if let directory {
      guard Self.write(picture, to: "\(directory)/\(Self.name(key))", in: directory) else { return }
    }
    state.withLock { state in
      state.total += picture.count - (state.entries[key]?.count ?? 0)
      state.entries[key] = Entry(count: picture.count, bytes: directory == nil ? picture : nil)
    }
  }

  private static func write(_ picture: [UInt8], to path: String, in directory: String) -> Bool {
    // Fails where it is there, and the file fails where it cannot be made.
    mkdir(directory, 0o700)
    do throws(SystemFailure) {
      let file = try FileDescriptor("\(path).new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
      try FileDescriptor.write(picture.span.bytes, to: file.number)
      try syscall("rename") { rename("\(path).new", path) }
      return true
    } catch {
      unlink("\(path).new")
      return false
    }
  }

  private func makeRoom(for count: Int) {
    let removed: [Key] = state.withLock { state in
      var removed: [Key] = []
      while state.total + count > room, let oldest = state.entries.keys.map(\.id).min() {
        removed += state.remove { $0.id == oldest }
      }
      return removed
    }
    delete(removed)
  }

  /// Removes the pictures of events before `first`, which are not in the history any more.
  package func forget(before first: UInt64) { delete(state.withLock { $0.remove { $0.id < first } }) }

  private func delete(_ keys: [Key]) {
    guard let directory else { return }
    for key in keys { unlink("\(directory)/\(Self.name(key))") }
  }

  /// Returns the moments of which there is a picture, of the alert that began with the event `id`.
  package func moments(of id: UInt64) -> [Moment] {
    state.withLock { state in Moment.allCases.filter { state.entries[Key(id: id, moment: $0)] != nil } }
  }

  /// Returns a picture; nil if there is none. Waits for the file system.
  package func picture(_ moment: Moment, of id: UInt64) -> [UInt8]? {
    let key = Key(id: id, moment: moment)
    guard let entry = state.withLock({ $0.entries[key] }) else { return nil }
    guard let directory else { return entry.bytes }
    // A file that somebody has removed or opened to others is no picture.
    return try? PlainFile.contents(
      of: "\(directory)/\(Self.name(key))", limit: Self.pictureLimit, others: .nothing
    ).bytes
  }
}
