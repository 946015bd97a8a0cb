import Alerts
import Foundation
import Platform
import TestSupport
import Testing

/// The history in memory and in its file.
@Suite struct AlertHistoryTests {
  private static func begin(_ kind: AlertKind = .noise) -> AlertDecision {
    .begin(AlertCondition(kind, camera: "nursery", since: .now(), confidence: 0.5, text: "\(kind)"), suppressed: 0)
  }

  private static func end(_ kind: AlertKind = .noise) -> AlertDecision {
    .end(AlertSubject(kind: kind, camera: "nursery"), since: .now())
  }

  @Test func `a reader gets each event once, and learns how many it was too late for`() {
    let history = AlertHistory()
    for _ in 0..<600 { history.record([Self.begin(), Self.end()], isQuiet: false) }
    #expect(history.lastID == 1200)
    #expect(history.after(1190).alerts.map(\.id) == Array(1191...1200))
    #expect(history.after(1190).missed == 0)
    let late = history.after(100)
    #expect(late.alerts.count == AlertHistory.limit && late.alerts.first?.id == 201 && late.missed == 100)
    // Of another history.
    #expect(history.after(5000).alerts.count == AlertHistory.limit)
    #expect(history.after(1200).alerts.isEmpty)
  }

  @Test func `an end names its beginning, and an alert is acknowledged once`() throws {
    let history = AlertHistory()
    history.record([Self.begin(), Self.begin(.crying), Self.end()], isQuiet: true)
    let alerts = history.newest(10)
    #expect(alerts.map(\.state) == [.began, .began, .ended] && alerts[2].of == 1 && alerts[2].quiet)
    #expect(try history.acknowledge(nil, by: "anna").map(\.of) == [2])
    #expect(history.isAcknowledged(2) && !history.isAcknowledged(1))
    #expect(try history.acknowledge(nil, by: "anna").isEmpty)
    #expect(try history.acknowledge(1, by: "anna").map(\.of) == [1])
    #expect(throws: AcknowledgementError.unknown(3)) { try history.acknowledge(3, by: "anna") }
    #expect(throws: AcknowledgementError.unknown(99)) { try history.acknowledge(99, by: "anna") }
  }

  @Test func `the file keeps the events, their order and what is open`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    let before: [Alert]
    do {
      let history = try AlertHistory(path: path)
      history.record([Self.begin(), Self.begin(.tooHot), Self.end()], isQuiet: false)
      _ = try history.acknowledge(2, by: "anna")
      before = history.newest(10)
      #expect(throws: AlertJournal.OpenError.inUse(path: path)) { try AlertHistory(path: path) }
    }
    let history = try AlertHistory(path: path)
    #expect(history.newest(10) == before)
    #expect(history.open == [AlertSubject(kind: .tooHot, camera: "nursery")])
    #expect(try history.acknowledge(nil, by: "anna").isEmpty)
    history.record([Self.begin()], isQuiet: false)
    #expect(history.lastID == 5)
  }

  @Test func `the checksum is that of zlib`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    do { try AlertHistory(path: path).record([Self.begin(), Self.end()], isQuiet: false) }
    let program = """
      import json, sys, zlib
      for line in open(sys.argv[1], 'rb'):
          sum, text = line[:8], line[9:-1]
          assert int(sum, 16) == zlib.crc32(text), line
          print(json.loads(text)['id'])
      """
    let result = try Subprocess.run(["python3", "-c", program, path], in: directory)
    #expect(result.outputText == "1\n2\n", "\(result.error)")
  }

  @Test func `damaged lines and cut ends are passed over, and the numbers go on`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    do { try AlertHistory(path: path).record([Self.begin(), Self.end(), Self.begin()], isQuiet: false) }
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    var random = SeededGenerator(seed: 24)
    for _ in 0..<300 {
      var damaged = whole
      if Bool.random(using: &random) {
        damaged = damaged.prefix(Int.random(in: 0...whole.count, using: &random))
      } else {
        damaged[Int.random(in: 0..<whole.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      }
      try damaged.write(to: URL(fileURLWithPath: path))
      let history = try AlertHistory(path: path)
      let read = history.newest(10)
      #expect(read.allSatisfy { $0.camera == "nursery" && (1...3).contains($0.id) })
      let last = history.lastID
      history.record([Self.begin(.crying)], isQuiet: false)
      #expect(history.newest(1).first?.id == last + 1)
      let again = try Self.reopened(path, closing: history)
      #expect(again.map(\.id) == read.map(\.id) + [last + 1])
    }
  }

  /// Returns the events of the file once the one history that holds it has ended.
  private static func reopened(_ path: String, closing history: consuming AlertHistory) throws -> [Alert] {
    _ = consume history
    // The lock belongs to the history of the caller as well; a copy of the file has none.
    let copy = path + ".copy"
    try? FileManager.default.removeItem(atPath: copy)
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    return try AlertHistory(path: copy).newest(10)
  }

  @Test func `an alert with a long text is cut, and survives`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    let condition = AlertCondition(
      .cameraLost, camera: "nursery", since: .now(), text: String(repeating: "\u{1}e\u{301}\u{301}", count: 5000))
    let history = try AlertHistory(path: path)
    history.record([.begin(condition, suppressed: 0)], isQuiet: false)
    let copy = directory.path("copy.log")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let kept = try AlertHistory(path: copy).newest(10)
    #expect(kept.count == 1 && kept == history.newest(10))
  }

  @Test func `the file is shortened to the events that are kept`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    let history = try AlertHistory(path: path)
    for index in 0..<2500 {
      history.record([index % 2 == 0 ? Self.begin() : Self.end()], isQuiet: false)
      if index % 50 == 0 { history.settle() }
    }
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").count
    #expect(lines >= AlertHistory.limit && lines <= 2 * AlertHistory.limit + 50)
    let copy = directory.path("copy.log")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    #expect(try AlertHistory(path: copy).newest(AlertHistory.limit) == history.newest(AlertHistory.limit))
  }

  @Test func `a full file system loses no event, and is told`() throws {
    let directory = try TemporaryDirectory()
    // A limit on the size of files refuses writes as a full file system does, and cuts the last one.
    let script = """
      trap '' XFSZ; ulimit -f 4; exec "$0" "$1"
      """
    let path = directory.path("events.log")
    let tool = try Subprocess(["sh", "-c", script, Self.tool, path], in: directory)
    defer { tool.send(SIGKILL) }
    try #require(eventually { tool.outputSoFar.split(separator: "\n").count > 200 })
    tool.send(SIGKILL)
    _ = try tool.wait()
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count <= 4 * 1024)
    let kept = try AlertHistory(path: path).newest(AlertHistory.limit)
    #expect(!kept.isEmpty && kept.map(\.id) == Array(1...UInt64(kept.count)))
    // The end came between a write that was cut and its removal, or after it: the next start removes what is left.
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).last == 0x0a)
  }

  private static let tool = builtPath("HistoryTool")

  @Test func `events that were told survive kill -9, each once`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("events.log")
    let rounds = ProcessInfo.processInfo.environment["NIGHTJAR_LONG"] == nil ? 10 : 100
    var random = SeededGenerator(seed: UInt64(rounds))
    var told: UInt64 = 0
    for round in 0..<rounds {
      let tool = try Subprocess([Self.tool, path], in: directory)
      let count = Int.random(in: 1...400, using: &random)
      try #require(eventually { tool.outputSoFar.split(separator: "\n").count > count || !tool.isRunning })
      tool.send(SIGKILL)
      _ = try tool.wait()
      // The last line may be cut; the ones before it were told.
      let lines = tool.outputSoFar.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      let first = try #require(lines.first.flatMap { UInt64($0.dropFirst("first ".count)) }, "\(lines.prefix(2))")
      #expect(first >= told, "round \(round): \(told) was told, and the next run knows \(first)")
      let numbers = lines.dropFirst().compactMap { UInt64($0) }
      #expect(numbers == Array((first + 1)..<(first + 1 + UInt64(numbers.count))))
      told = numbers.last ?? first
    }
    let history = try AlertHistory(path: path)
    let kept = history.newest(AlertHistory.limit).map(\.id)
    let last = try #require(kept.last)
    #expect(last >= told && last <= told + 1)
    #expect(kept == Array((last + 1 - UInt64(kept.count))...last) && kept.count == min(AlertHistory.limit, Int(last)))
    // Each alert has its own picture, and no other picture is left.
    history.forgetPictures()
    let began = history.newest(AlertHistory.limit).filter { $0.state == .began }.map(\.id)
    for id in began {
      let picture = history.pictures.picture(.before, of: id).map { String(decoding: $0, as: UTF8.self) }
      #expect(picture == String(repeating: "\(id) ", count: 100))
    }
    let files = try FileManager.default.contentsOfDirectory(atPath: "\(path).pictures")
    #expect(Set(files) == Set(began.map { "\($0)-before.jpg" }))
  }
}
