import Alerts
import Foundation
import Platform
import TestSupport
import Testing

/// The pictures of the alerts, in memory and in files.
@Suite struct AlertPicturesTests {
  private static func picture(_ count: Int, _ value: UInt8 = 7) -> [UInt8] { Array(repeating: value, count: count) }

  private static func begin(_ history: AlertHistory, picture: [UInt8]?) {
    let condition = AlertCondition(.noise, camera: "nursery", since: .now(), text: "noise")
    history.record([.begin(condition, suppressed: 0)], isQuiet: false) { _ in picture }
  }

  private static func files(_ folder: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
  }

  @Test func `only the user that runs the program can read the files, and a restart has them`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    do {
      let history = try AlertHistory(path: path)
      Self.begin(history, picture: Self.picture(1000))
      history.pictures.store(Self.picture(2000), .after, of: 1)
      #expect(history.newest(1).map(history.illustrated).first?.pictures == [.before, .after])
    }
    let mode = try Subprocess.run(
      ["stat", "-c", "%a", "\(path).pictures", "\(path).pictures/1-before.jpg", "\(path).pictures/1-after.jpg"],
      in: directory)
    #expect(mode.outputText == "700\n600\n600\n", "\(mode.error)")
    // What a crash leaves: half a picture, and the picture of an event that was not told.
    for name in ["1-before.jpg.new", "2-before.jpg", "another's.jpg", "1-before.txt"] {
      try Data(Self.picture(10)).write(to: URL(fileURLWithPath: "\(path).pictures/\(name)"))
    }
    let history = try AlertHistory(path: path)
    #expect(Self.files("\(path).pictures") == ["1-after.jpg", "1-before.jpg", "1-before.txt", "another's.jpg"])
    #expect(history.pictures.picture(.before, of: 1) == Self.picture(1000))
    #expect(history.pictures.picture(.after, of: 1)?.count == 2000)
    #expect(history.pictures.picture(.before, of: 2) == nil)
  }

  @Test func `pictures go with their events`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    let history = try AlertHistory(path: path)
    for _ in 0..<3 { Self.begin(history, picture: Self.picture(10)) }
    for _ in 0..<(AlertHistory.limit - 1) { Self.begin(history, picture: nil) }
    history.forgetPictures()
    #expect(Self.files("\(path).pictures") == ["3-before.jpg"])
  }

  @Test(arguments: [true, false]) func `the room is bounded, and the oldest alerts make room`(isInMemory: Bool) throws {
    let directory = try TemporaryDirectory()
    let folder = isInMemory ? nil : directory.path("pictures")
    let pictures = AlertPictures(directory: folder, room: 10_000)
    for id in 1...9 as ClosedRange<UInt64> {
      pictures.store(Self.picture(1500, UInt8(id)), .before, of: id)
      pictures.store(Self.picture(1500, UInt8(id)), .after, of: id)
    }
    #expect((1...9).map { pictures.moments(of: $0).count } == [0, 0, 0, 0, 0, 0, 2, 2, 2])
    #expect(pictures.picture(.after, of: 8) == Self.picture(1500, 8))
    pictures.store(Self.picture(10_001), .before, of: 10)
    #expect(pictures.moments(of: 10).isEmpty && pictures.moments(of: 9).count == 2)
    // A smaller room at the next start.
    if let folder {
      let next = AlertPictures(directory: folder, known: 1...9, room: 4000)
      #expect((7...9).map { next.moments(of: $0).count } == [0, 0, 2])
      #expect(Self.files(folder) == ["9-after.jpg", "9-before.jpg"])
    }
  }

  @Test func `a file system that refuses costs the picture and not the event`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    // A file stands where the folder would be made.
    try Data().write(to: URL(fileURLWithPath: "\(path).pictures"))
    let history = try AlertHistory(path: path)
    Self.begin(history, picture: Self.picture(10))
    #expect(history.lastID == 1 && history.illustrated(history.newest(1)[0]).pictures == nil)
  }
}
