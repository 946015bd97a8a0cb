public import Foundation

/// A program that a test runs beside itself.
public final class Subprocess: @unchecked Sendable {
  // Sendable: `Process` is used by the one test that made it.
  private let process = Process()
  private let outputURL: URL
  private let errorURL: URL

  /// What a finished program left.
  public struct Result: Sendable {
    /// The exit code, or the signal that ended it.
    public let status: Int32
    /// Standard output.
    public let output: Data
    /// Standard error.
    public let error: String

    /// Standard output as text.
    public var outputText: String { String(decoding: output, as: UTF8.self) }
  }

  /// Starts `arguments[0]`, found in PATH unless it is a path. Output goes to files, so that nothing blocks on a
  /// full pipe.
  public init(_ arguments: [String], in directory: TemporaryDirectory, environment: [String: String] = [:]) throws {
    let name = UUID().uuidString
    outputURL = directory.url.appendingPathComponent("\(name).out")
    errorURL = directory.url.appendingPathComponent("\(name).err")
    for url in [outputURL, errorURL] { try Data().write(to: url) }
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    // The machine's own configuration is none of a test's.
    process.environment = ProcessInfo.processInfo.environment.merging(["NIGHTJAR_CONFIG": "none"]) { $1 }
      .merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: outputURL)
    process.standardError = try FileHandle(forWritingTo: errorURL)
    try process.run()
  }

  /// Sends a signal.
  public func send(_ signal: Int32) {
    if process.isRunning { kill(process.processIdentifier, signal) }
  }

  /// Whether it still runs.
  public var isRunning: Bool { process.isRunning }

  /// Its process ID.
  public var identifier: Int32 { process.processIdentifier }

  /// What was written to standard output so far.
  public var outputSoFar: String { (try? String(contentsOf: outputURL, encoding: .utf8)) ?? "" }

  /// What it wrote to standard error so far.
  public var errorSoFar: String { (try? String(contentsOf: errorURL, encoding: .utf8)) ?? "" }

  /// Waits for its end; kills it after `limit` seconds, whatever a test does to the wall clock. That shows in the status.
  public func wait(limit: Double = 120) throws -> Result {
    let deadline = ContinuousClock.now + .seconds(limit)
    while process.isRunning, .now < deadline { usleep(5000) }
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
  public static func run(
    _ arguments: [String], in directory: TemporaryDirectory, environment: [String: String] = [:], limit: Double = 120
  ) throws -> Result {
    try Subprocess(arguments, in: directory, environment: environment).wait(limit: limit)
  }
}

/// A directory of the test's own, removed with the value.
public final class TemporaryDirectory: Sendable {
  /// Where it is.
  public let url: URL

  /// Makes a fresh one.
  public init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("nightjar-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }

  /// The path of a file in it.
  public func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// Writes a file into it; its path.
  public func write(_ bytes: some Sequence<UInt8>, as name: String) throws -> String {
    try Data(bytes).write(to: url.appendingPathComponent(name))
    return path(name)
  }
}

/// The program under test, built beside the test bundle.
public let nightjarPath: String = {
  let bundle = URL(fileURLWithPath: CommandLine.arguments[0])
  return bundle.deletingLastPathComponent().appendingPathComponent("nightjar").path
}()

/// Waits until `condition` holds; false after `limit` seconds.
public func eventually(within limit: Double = 30, _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(limit)
  while .now < deadline {
    if try condition() { return true }
    usleep(10_000)
  }
  return try condition()
}

/// The same for tests that are `async`: Swift's threads are few, and one that sleeps keeps the others' tasks from beginning.
/// Those that do not, and run beside it, may take all of them for a minute.
public func comesTrue(
  within limit: Double = 300, isolation: isolated (any Actor)? = #isolation, _ condition: () throws -> Bool
) async rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(limit)
  while .now < deadline {
    if try condition() { return true }
    try? await Task.sleep(nanoseconds: 10_000_000)
  }
  return try condition()
}

/// UDP ports of this machine.
public enum UDPPort {
  /// An even port that was free a moment ago, with its neighbour: RTP and RTCP.
  public static func free() throws -> UInt16 {
    for _ in 0..<100 {
      let port = UInt16.random(in: 10_000...30_000) * 2 % 40_000 + 20_000
      if try !isBound(port & ~1), try !isBound(port | 1) { return port & ~1 }
    }
    throw CocoaError(.featureUnsupported)
  }

  /// Sends one datagram; here an RTCP BYE (RFC 3550 section 6.6), on which receivers end.
  public static func send(_ bytes: [UInt8], to host: String, port: UInt16) throws {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let address = list?.pointee else {
      throw CocoaError(.fileNoSuchFile)
    }
    defer { freeaddrinfo(list) }
    let socket = socket(address.ai_family, address.ai_socktype, 0)
    defer { close(socket) }
    guard sendto(socket, bytes, bytes.count, 0, address.ai_addr, address.ai_addrlen) == bytes.count else {
      throw CocoaError(.fileWriteUnknown)
    }
  }

  /// Whether some program of this machine is bound to `port`, by the kernel's own table.
  public static func isBound(_ port: UInt16) throws -> Bool {
    let hex = String(format: ":%04X ", port)
    for table in ["/proc/net/udp", "/proc/net/udp6"] where FileManager.default.fileExists(atPath: table) {
      let lines = try String(contentsOfFile: table, encoding: .utf8).split(separator: "\n").dropFirst()
      for line in lines {
        let fields = line.split(separator: " ")
        if fields.count > 1, (fields[1] + " ").hasSuffix(hex) { return true }
      }
    }
    return false
  }
}
