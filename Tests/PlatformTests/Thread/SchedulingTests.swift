import Foundation
import Platform
import TestSupport
import Testing

/// The scheduling of the program's threads, as util-linux and proc(5) tell it.
@Suite struct SchedulingTests {
  /// `true` if this process may set limits and become another user.
  static let isRoot = getuid() == 0
  /// `true` if it may give real-time priority, which some containers do not allow.
  static let givesRealTime = isRoot && RequestedPriority.isAllowed
  /// `true` if it may raise limits.
  static let raisesLimits =
    isRoot
    && (try? Subprocess.run(
      ["prlimit", "--rtprio=10:10", "--memlock=unlimited:unlimited", "true"], in: TemporaryDirectory()
    )
    .status) == 0
  private static let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

  private final class Program {
    let process: Subprocess
    let directory: TemporaryDirectory

    init(_ arguments: [String], after prefix: [String] = []) throws {
      directory = try TemporaryDirectory()
      // Another user is to make a socket in it.
      chmod(directory.url.path, 0o777)
      process = try Subprocess(
        prefix + [
          nightjarPath, "stream", "--source", "test", "--size", "160x120", "--control", directory.path("control"),
        ]
          + ["--to", "rtp://127.0.0.1:\(UDPPort.free())", "--sdp", directory.path("s.sdp")] + arguments, in: directory)
      let process = process
      try #require(eventually { process.log.isStreaming }, "\(process.errorSoFar)")
    }

    deinit { process.send(SIGKILL) }

    /// The numbers of its threads by name, of those whose name comes once.
    func threads() throws -> [String: Int] {
      let tasks = "/proc/\(process.identifier)/task"
      var threads: [String: Int] = [:]
      for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
        guard let name = try? String(contentsOfFile: "\(tasks)/\(task)/comm", encoding: .utf8) else { continue }
        threads[name.trimmingCharacters(in: .newlines)] = Int(task)
      }
      return threads
    }

    /// Returns the number of a thread. A thread outside the frames' path may get its name after frames flow.
    func thread(_ name: String) throws -> Int {
      var identifier: Int?
      _ = try eventually {
        identifier = try threads()[name]
        return identifier != nil
      }
      return try #require(identifier, "no thread \(name)")
    }

    /// Returns the output of a program about a thread: `chrt -p TID`.
    func tell(_ arguments: String..., of thread: String) throws -> String {
      let identifier = try self.thread(thread)
      return try Subprocess.run(arguments + ["\(identifier)"], in: directory).outputText
    }

    /// A figure of its status, in KiB.
    func kibibytes(_ name: String) throws -> Int {
      let line = try status()[name] ?? ""
      return try #require(Int(line.prefix { $0 != " " }), "\(name): \(line)")
    }

    /// The lines of its status.
    func status() throws -> [String: String] {
      let text = try KernelFile.text("/proc/\(process.identifier)/status")
      return Dictionary(
        text.split(separator: "\n").compactMap { line in
          let parts = line.split(separator: ":", maxSplits: 1)
          return parts.count == 2 ? (String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces)) : nil
        }, uniquingKeysWith: { first, _ in first })
    }

    func control(_ arguments: String...) throws -> Subprocess.Result {
      try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", directory.path("control")], in: directory)
    }

    /// Policy and priority by its own word, by thread.
    func told() throws -> [String: String] {
      let answer = try JSONSerialization.jsonObject(with: control("status", "--json").output) as? [String: Any]
      let camera = try #require((answer?["cameras"] as? [[String: Any]])?.first)
      let threads = try #require(camera["threads"] as? [[String: Any]])
      return Dictionary(
        threads.map { ($0["name"] as? String ?? "", "\($0["policy"] ?? "") \($0["priority"] ?? "")") },
        uniquingKeysWith: { first, _ in first })
    }
  }

  private struct Case: CustomTestStringConvertible {
    let limit: Int
    var isNobody = false
    let option: String?
    let priority: Int

    var testDescription: String {
      "\(isNobody ? "nobody" : "root"), limit \(limit), \(option ?? "default"): \(priority)"
    }
  }

  @Test(
    .enabled(if: givesRealTime),
    arguments: [
      Case(limit: 10, option: nil, priority: 5), Case(limit: 3, option: nil, priority: 3),
      Case(limit: 0, option: nil, priority: 0), Case(limit: 0, option: "on", priority: 5),
      Case(limit: 10, option: "off", priority: 0),
      Case(limit: 10, isNobody: true, option: "auto", priority: 5),
      Case(limit: 0, isNobody: true, option: "on", priority: 0),
    ].filter { $0.limit == 0 || raisesLimits })
  private func `real-time priority is taken where it is allowed, and never needed`(_ given: Case) throws {
    let program = try Program(
      given.option.map { ["--realtime", $0] } ?? [],
      after: ["prlimit", "--rtprio=\(given.limit):\(given.limit)"] + (given.isNobody ? Self.nobody : []))
    for thread in ["nj-capture", "nj-send"] {
      let text = try program.tell("chrt", "-p", of: thread)
      #expect(text.contains(given.priority > 0 ? "SCHED_RR" : "SCHED_OTHER"), "\(text)")
      #expect(text.contains("priority: \(given.priority)\n"), "\(text)")
    }
    #expect(try program.tell("chrt", "-p", of: "nj-encode").contains("SCHED_OTHER"))
    let word = given.priority > 0 ? "rr \(given.priority)" : "other 0"
    #expect(try program.told() == ["nj-capture": word, "nj-encode": "other 0", "nj-send": word])
    let complains = given.option == "on" && given.priority == 0
    let process = program.process
    func hasComplained() -> Bool { process.log.lines.contains { $0.hasPrefix("no real-time priority, ") } }
    #expect(complains ? eventually { hasComplained() } : !hasComplained(), "\(process.errorSoFar)")
    let doctor = try Subprocess.run(
      [nightjarPath, "doctor", "--json", "--socket", program.directory.path("control")], in: program.directory)
    #expect(doctor.outputText.contains("realtime-none") == (given.limit == 0 && given.priority == 0))
  }

  @Test(.enabled(if: givesRealTime)) func `a scheduling policy from the start of the program stays`() throws {
    let program = try Program(["--realtime", "off"], after: ["chrt", "--fifo", "20"])
    #expect(try program.told()["nj-capture"] == "fifo 20")
    guard Self.raisesLimits else { return }
    let other = try Program([], after: ["prlimit", "--rtprio=10:10", "chrt", "--fifo", "20"])
    #expect(try other.told()["nj-send"] == "fifo 20")
  }

  @Test func `timers of the frames' threads are exact, and no other's`() throws {
    let program = try Program([])
    func slack(_ thread: String) throws -> Int? {
      let identifier = try program.thread(thread)
      return Int(
        try KernelFile.text("/proc/\(identifier)/timerslack_ns")
          .trimmingCharacters(in: .newlines))
    }
    for thread in ["nj-capture", "nj-encode", "nj-send"] { #expect(try slack(thread) ?? .max <= 1, "\(thread)") }
    #expect(try slack("nj-standby") ?? 0 >= 1000)
  }

  @Test func `a camera's threads run on the processors that it is given`() throws {
    let own = try #require(ProcessorSet.ofThread())
    let last = try #require(own.numbers.last)
    let program = try Program(["--cpus", "\(last)"])
    for thread in ["nj-capture", "nj-encode", "nj-send", "nj-standby"] {
      let text = try program.tell("taskset", "-pc", of: thread)
      #expect(text.hasSuffix(": \(last)\n"), "\(thread): \(text)")
    }
    let main = try Subprocess.run(["taskset", "-pc", "\(program.process.identifier)"], in: program.directory)
    let list = main.outputText.split(separator: " ").last?.trimmingCharacters(in: .newlines) ?? ""
    #expect(ProcessorSet(text: list) == own, "\(main.outputText)")
    let threads = try program.control("status").listing.values(of: "threads")
    #expect(threads.count == 1 && threads.allSatisfy { $0.hasSuffix("; processors \(last)") }, "\(threads)")
  }

  @Test(arguments: ["8191", "0-8191", "8192", "-1", "1-0", "a", "", "0,", "0-"])
  func `processors that there are not are refused with those that there are`(list: String) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "stream", "--source", "test", "--duration", "1s", "--cpus=\(list)"], in: directory)
    #expect(result.status == 64, "\(result.error)")
    let own = try #require(ProcessorSet.ofThread())
    guard list.hasSuffix("8191") else { return }
    let mistake = try #require(result.error.split(separator: "\n").first)
    #expect(mistake.hasSuffix(" for this program: it may run on \(own)"), "\(result.error)")
  }

  @Test(.enabled(if: raisesLimits), arguments: [false, true])
  func `memory is locked where nothing limits that, and otherwise refused`(isNobody: Bool) throws {
    let user = isNobody ? Self.nobody : []
    let program = try Program(["--lock-memory"], after: ["prlimit", "--memlock=unlimited:unlimited"] + user)
    #expect(try program.kibibytes("VmLck") > 10_000)
    #expect(try program.control("status").listing.count(of: "memory       locked") == 1)
    // Only what is used is in memory.
    let (size, resident) = (try program.kibibytes("VmSize"), try program.kibibytes("VmRSS"))
    #expect(resident < size / 2, "\(resident) of \(size)")
  }

  @Test(.enabled(if: isRoot)) func `memory that is limited is not locked, and the limit is told`() throws {
    let refused = try Subprocess.run(
      ["prlimit", "--memlock=65536:65536"] + Self.nobody + [
        nightjarPath, "stream", "--source", "test", "--duration", "1s", "--lock-memory",
      ], in: TemporaryDirectory())
    #expect(refused.status == 77, "\(refused.error)")
    #expect(
      refused.log.failures == [
        "--lock-memory: this program may lock only 64 KiB of memory; write 'USER - memlock unlimited' to a file in "
          + "/etc/security/limits.d, and log in again; in a unit: LimitMEMLOCK=infinity"
      ])
  }

  @Test func `sets of processors are read and written as taskset does`() throws {
    #expect(ProcessorSet(text: "3,0-1,1")?.description == "0-1,3")
    #expect(ProcessorSet(text: "7")?.numbers == [7])
    #expect(ProcessorSet([Int]()) == nil && ProcessorSet([-1]) == nil && ProcessorSet([8192]) == nil)
    for wrong in [
      "", ",", "1-", "-1", "2-1", "1 2", "0x1", "99999", "123456", String(repeating: "1,", count: 1000) + "1",
    ] {
      #expect(ProcessorSet(text: wrong) == nil, "\(wrong)")
    }
  }
}
