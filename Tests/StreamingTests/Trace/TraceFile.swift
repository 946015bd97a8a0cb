import Foundation
import Testing

/// A trace as Perfetto and Chrome read it, by Foundation's JSON reader and the rules of the Trace Event Format.
struct TraceFile {
  /// A thread and a time of it, in microseconds.
  struct Place: Hashable {
    let thread: Int
    let time: Double
  }

  struct Event {
    let fields: [String: Any]

    var phase: String { fields["ph"] as? String ?? "" }
    var name: String { fields["name"] as? String ?? "" }
    var process: Int { fields["pid"] as? Int ?? -1 }
    var thread: Int { fields["tid"] as? Int ?? -1 }
    /// Microseconds.
    var time: Double { fields["ts"] as? Double ?? .nan }
    var duration: Double { fields["dur"] as? Double ?? .nan }
    var identifier: String { fields["id"] as? String ?? "" }
    var arguments: [String: Any] { fields["args"] as? [String: Any] ?? [:] }
    /// The thread and the time.
    var place: Place { Place(thread: thread, time: time) }
    /// -1 for what is none's.
    var frame: Int { arguments["frame"] as? Int ?? -1 }
  }

  let events: [Event]

  /// - Parameter isWhole: `true` if it has its last bracket, as of a program that was not killed.
  init(_ path: String, isWhole: Bool = true) throws {
    var text = try String(contentsOfFile: path, encoding: .utf8)
    if !isWhole {
      // The format allows it to be left out, and a program that is killed may leave part of a line behind.
      try #require(!text.hasSuffix("]\n"))
      let end = try #require(text.range(of: "},\n", options: .backwards) ?? text.range(of: "}", options: .backwards))
      text = text[..<end.lowerBound] + "}]"
    }
    let list = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
    events = list.map(Event.init)
  }

  func slices(_ name: String) -> [Event] { events.filter { $0.phase == "X" && $0.name == name } }

  /// The names that metadata give to processes.
  var processes: [Int: String] {
    Dictionary(
      events.filter { $0.name == "process_name" }.map { ($0.process, $0.arguments["name"] as? String ?? "") },
      uniquingKeysWith: { first, _ in first })
  }

  /// The names that metadata give to the threads of a process.
  func threads(of process: Int) -> Set<String> {
    Set(
      events.filter { $0.name == "thread_name" && $0.process == process }
        .compactMap { $0.arguments["name"] as? String })
  }

  /// The faults of it, a line each.
  var faults: [String] {
    var faults: [String] = []
    for event in events {
      let isRight =
        switch event.phase {
        case "M": event.arguments["name"] is String || event.arguments["sort_index"] is Int
        case "X": event.duration >= 0 && event.time > 0 && (event.arguments["frame"] is Int || event.name == "dropped")
        case "s", "t", "f": event.time > 0 && event.identifier.hasPrefix("0x") && event.fields["bp"] as? String == "e"
        case "b", "e": event.time > 0 && event.identifier.hasPrefix("0x")
        default: false
        }
      if !isRight || event.process < 1 || event.thread < 0 || event.name.isEmpty { faults.append("\(event.fields)") }
    }
    // Slices of a thread lie within each other or apart, else a viewer cannot draw them.
    for (thread, slices) in Dictionary(grouping: events.filter { $0.phase == "X" }, by: \.thread) {
      var open: [Double] = []
      for slice in slices.sorted(by: { ($0.time, -$0.duration) < ($1.time, -$1.duration) }) {
        while let end = open.last, end <= slice.time + 0.0005 { open.removeLast() }
        // Doubles of a day's microseconds are exact to a nanosecond or so.
        if let end = open.last, slice.time + slice.duration > end + 0.01 {
          faults.append("\(slice.name) at \(slice.time) on \(thread) ends after what it lies in")
        }
        open.append(slice.time + slice.duration)
      }
    }
    // An arrow's points lie in slices of their threads.
    let starts = Set(events.filter { $0.phase == "X" }.map(\.place))
    for point in events where ["s", "t", "f"].contains(point.phase) && !starts.contains(point.place) {
      faults.append("an arrow's point \(point.fields) is in no slice")
    }
    // Each arrow begins once, and ends once at most.
    for phase in ["s", "f", "b", "e"] {
      let identifiers = events.filter { $0.phase == phase }.map { "\($0.process) \($0.identifier)" }
      if Set(identifiers).count != identifiers.count { faults.append("\(phase) comes twice for a frame") }
    }
    return faults
  }
}
