package import Foundation

/// A program that a test runs beside itself.
package final class Subprocess: @unchecked Sendable {
  // Sendable: `Process` is used by the one test that made it.
  private let process = Process()
  private let outputURL: URL
  private let errorURL: URL

  /// A program inherits which signals are ignored, and a shell's background job ignores SIGINT: the programs of such a
  /// test run would ignore what a test sends them.
  private static let defaultSignals: Void = {
    for number in [SIGINT, SIGTERM, SIGHUP] { signal(number, SIG_DFL) }
  }()

  /// The results of a finished program.
  package struct Result: Sendable {
    /// The exit code, or the signal that ended it.
    package let status: Int32
    /// Standard output.
    package let output: Data
    /// Standard error.
    package let error: String

    /// Standard output as text.
    package var outputText: String { String(decoding: output, as: UTF8.self) }
  }

  /// Starts `arguments[0]`, found in PATH unless it is a path. Output goes to files, so that nothing blocks on a
  /// full pipe.
  package init(_ arguments: [String], in directory: TemporaryDirectory, environment: [String: String] = [:]) throws {
    let name = UUID().uuidString
    outputURL = directory.url.appendingPathComponent("\(name).out")
    errorURL = directory.url.appendingPathComponent("\(name).err")
    for url in [outputURL, errorURL] { try Data().write(to: url) }
    Self.defaultSignals
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    // The machine's own configuration is none of a test's, and the browsers' port may be another test's.
    // GStreamer tells by its log what ``countingSink(_:)`` has counted.
    var own = ["NIGHTJAR_CONFIG": "none", "GST_DEBUG": "fakesink:5", "GST_DEBUG_NO_COLOR": "1"]
    if arguments.contains(where: { $0.contains("--http") }) { own["NIGHTJAR_WEBRTC_PORT"] = "0" }
    process.environment = ProcessInfo.processInfo.environment.merging(own) { $1 }
      .merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: outputURL)
    process.standardError = try FileHandle(forWritingTo: errorURL)
    // A thread of Swift's may have all signals blocked, and what it starts would inherit that: no SIGTERM would end it.
    var (none, before) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try process.run()
  }

  /// Sends a signal.
  package func send(_ signal: Int32) {
    if process.isRunning { kill(process.processIdentifier, signal) }
  }

  /// `true` while it still runs.
  package var isRunning: Bool { process.isRunning }

  /// Its process ID.
  package var identifier: Int32 { process.processIdentifier }

  /// The standard output so far.
  package var outputSoFar: String { Self.text(of: outputURL) }

  /// The standard error so far.
  package var errorSoFar: String { Self.text(of: errorURL) }

  /// The text of a file that is still written: its last character may not be whole yet.
  private static func text(of url: URL) -> String {
    String(decoding: (try? Data(contentsOf: url)) ?? Data(), as: UTF8.self)
  }

  /// Waits for its end; kills it after `limit` seconds, whatever a test does to the wall clock. That shows in the
  /// status.
  package func wait(limit: Double = 120) throws -> Result {
    let deadline = ContinuousClock.now + .seconds(limit)
    // A short program is waited for at most a quarter longer than it takes, and a long one is seldom asked for.
    var pause: UInt32 = 1000
    while process.isRunning, .now < deadline {
      usleep(pause)
      pause = min(pause + pause / 4, 50_000)
    }
    if process.isRunning {
      // With what it started, if that is its own group: what a child leaves open, Foundation waits for.
      if getpgid(process.processIdentifier) == process.processIdentifier { kill(-process.processIdentifier, SIGKILL) }
      kill(process.processIdentifier, SIGKILL)
    }
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus, output: try Data(contentsOf: outputURL),
      error: String(decoding: try Data(contentsOf: errorURL), as: UTF8.self))
  }

  /// Runs a program to its end.
  package static func run(
    _ arguments: [String], in directory: TemporaryDirectory, environment: [String: String] = [:], limit: Double = 120
  ) throws -> Result {
    try Subprocess(arguments, in: directory, environment: environment).wait(limit: limit)
  }
}

/// A directory of the test's own, removed with the value.
package final class TemporaryDirectory: Sendable {
  /// Where it is.
  package let url: URL

  /// Makes a fresh one.
  package init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("nightjar-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }

  /// The path of a file in it.
  package func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// Writes a file into it; its path.
  package func write(_ bytes: some Sequence<UInt8>, as name: String) throws -> String {
    try Data(bytes).write(to: url.appendingPathComponent(name))
    return path(name)
  }
}

/// The folder of the package.
package let packageRoot = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent()

/// Returns the path of a program that is built beside the test bundle.
package func builtPath(_ name: String) -> String {
  URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(name).path
}

/// The program under test: what `NIGHTJAR` names, or the one that is built beside the test bundle.
package let nightjarPath = ProcessInfo.processInfo.environment["NIGHTJAR"] ?? builtPath("nightjar")

/// The pause after a question that took so long: a question that starts a program leaves the processor to what is asked
/// about, and to the other tests.
private func pause(after duration: Duration) -> Duration {
  max(.milliseconds(10), min(duration * 8, .milliseconds(400)))
}

/// Waits until `condition` holds; false after `limit` seconds.
package func eventually(within limit: Double = 90, _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(limit)
  while true {
    let begun = ContinuousClock.now
    if try condition() { return true }
    if begun >= deadline { return false }
    usleep(UInt32(pause(after: .now - begun) / .microseconds(1)))
  }
}

/// The same for tests that are `async`: Swift's threads are few, and one that sleeps keeps the others' tasks from
/// beginning. Those that do not, and run beside it, may take all of them for a minute.
package func comesTrue(
  within limit: Double = 300, isolation: isolated (any Actor)? = #isolation, _ condition: () throws -> Bool
) async rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(limit)
  while true {
    let begun = ContinuousClock.now
    if try condition() { return true }
    if begun >= deadline { return false }
    try? await Task.sleep(for: pause(after: .now - begun))
  }
}
