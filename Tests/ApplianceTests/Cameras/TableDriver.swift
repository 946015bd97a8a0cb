import Appliance
import Foundation
import Media
import Platform
import Serving
import Streaming
import TestSupport

/// A table of cameras with a clock of its own. What a run would do for an effect is an event of the test.
struct TableDriver {
  var table: CameraTable
  var now = Instant(seconds: 100)
  /// The effects since the last look, but for those that only show the state to others.
  private(set) var effects: [String] = []
  /// The lines since the last look.
  private(set) var lines: [String] = []
  /// The answers of reloads.
  private(set) var answers: [ReloadAnswer] = []
  /// The reason why the parts of a stream do not adopt changes.
  var adoptionFailure: String?

  init(_ text: String) throws {
    table = CameraTable(try Self.configuration(text), isServed: false)
  }

  /// Reads a configuration file with this text.
  static func configuration(_ text: String, arguments: [String] = []) throws -> ApplianceConfiguration {
    let directory = try TemporaryDirectory()
    let path = directory.path("box.toml")
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    return try ApplianceConfiguration.load(
      arguments: ["--config=\(path)"] + arguments, environment: [:], checkSyntax: { _ in })
  }

  mutating func begin() { carryOut(table.begin(at: now)) }

  mutating func handle(_ event: CameraTable.Event) { carryOut(table.handle(event, at: now)) }

  private mutating func carryOut(_ effects: [CameraTable.Effect]) {
    note(effects)
    note(table.handle(.carriedOut, at: now))
  }

  mutating func pass(_ seconds: Double) {
    now = now + Duration(seconds: seconds)
    handle(.tick)
  }

  /// A reload reads `text`; the servers follow at once.
  mutating func reload(
    _ text: String, isServed: Bool = false, _ observations: [Int: CameraTable.Observation] = [:]
  ) throws {
    handle(
      .reload(try Self.configuration(text), isServed: isServed, asked: now, warnings: [], observations))
    handle(.serversFollowed)
  }

  /// The work on a camera opens it, and its stream begins.
  mutating func open(_ number: Int) {
    handle(.workEnded(number, .opened))
    if effects.last == "begin \(number)" { handle(.streams(number)) }
  }

  /// Returns the effects since the last call.
  mutating func take() -> [String] {
    defer { (effects, lines) = ([], []) }
    return effects
  }

  private mutating func note(_ effects: [CameraTable.Effect]) {
    for effect in effects {
      switch effect {
      case .add(let number, let former):
        self.effects.append("add \(number)" + (former.map { " after \($0)" } ?? ""))
      case .remove(let number): self.effects.append("remove \(number)")
      case .open(let number): self.effects.append("open \(number)")
      case .begin(let number): self.effects.append("begin \(number)")
      case .change(let number, let changes):
        self.effects.append("change \(number): \(changes.map(\.name).sorted().joined(separator: " "))")
      case .adopt(let number, _):
        self.effects.append("adopt \(number)")
        note(table.handle(.adopted(number, failure: adoptionFailure), at: now))
      case .release(let number, _): self.effects.append("release \(number)")
      case .close: self.effects.append("close")
      case .keepAlive: self.effects.append("keep alive")
      case .tell(_, let text, _, _): lines.append(text)
      case .answer(let answer): answers.append(answer)
      case .answerWaiters, .publish, .introduce, .follow: break
      }
    }
  }
}

extension ReloadAnswer {
  /// The cameras and what has become of them: `a changed (bitrate: 1M)`.
  var text: [String] {
    cameras.map {
      "\($0.name) \($0.outcome.rawValue)" + ($0.changes.isEmpty ? "" : " (\($0.changes.joined(separator: ", ")))")
    }
  }
}

/// Two cameras that stream to this machine.
func two(_ first: String = "", _ second: String = "") -> String {
  """
  [[camera]]
  name = "a"
  source = "test"
  to = "rtp://127.0.0.1:6000"
  \(first)
  [[camera]]
  name = "b"
  source = "/dev/video7"
  to = "rtp://127.0.0.1:6002"
  \(second)
  """
}
