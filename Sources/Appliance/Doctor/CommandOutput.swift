import CLinux
import Glibc
package import Platform

/// The output of another program.
package enum CommandOutput {
  /// The limit of bytes that are read.
  static let limit = 1 << 16

  /// Runs `words[0]`, found in PATH, and returns its output, whatever its exit code. Nil where it cannot be started or
  /// takes longer than `patience`; in the latter case it is killed.
  package static func text(_ words: [String], patience: Duration) -> String? {
    run(words, patience: patience, withErrors: false)?.text
  }

  /// Runs `words[0]`, found in PATH, with `input`, and returns its exit code and its output with its errors. Nil where it
  /// cannot be started or takes longer than `patience`; in the latter case it is killed.
  ///
  /// - Parameter input: less than a pipe holds, 4096 bytes.
  package static func run(
    _ words: [String], input: [UInt8] = [], patience: Duration, withErrors: Bool = true
  ) -> (status: CInt, text: String)? {
    guard var outputs = try? Pipe(), var inputs = try? Pipe(input) else { return nil }
    inputs.endWriting()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, outputs.writing, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, inputs.reading, STDIN_FILENO)
    if withErrors {
      posix_spawn_file_actions_adddup2(&actions, outputs.writing, STDERR_FILENO)
    } else {
      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    }
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
    arguments.append(nil)
    defer { for argument in arguments { free(argument) } }
    var process = pid_t()
    let result = posix_spawnp(&process, words[0], &actions, nil, arguments, environ())
    outputs.endWriting()
    guard result == 0 else { return nil }
    var bytes: [UInt8] = []
    let isDone = read(outputs.reading, into: &bytes, until: .now() + patience)
    if !isDone { kill(process, SIGKILL) }
    var status: CInt = 0
    _ = try? syscall("waitpid") { waitpid(process, &status, 0) }
    // WIFEXITED and WEXITSTATUS are macros.
    let code = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + status & 0x7F
    return isDone ? (code, String(decoding: bytes, as: UTF8.self)) : nil
  }

  private static func environ() -> [UnsafeMutablePointer<CChar>?] {
    var entries: [UnsafeMutablePointer<CChar>?] = []
    guard var next = nightjar_environment() else { return [nil] }
    while let entry = next.pointee {
      entries.append(UnsafeMutablePointer(mutating: entry))
      next += 1
    }
    return entries + [nil]
  }

  /// Reads to the end; returns `false` where the other end was not closed in time.
  private static func read(_ descriptor: CInt, into bytes: inout [UInt8], until deadline: Instant) -> Bool {
    var part = [UInt8](repeating: 0, count: 4096)
    while true {
      var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let rest = (deadline - .now()).nanoseconds
      guard rest > 0 else { return false }
      guard nightjar_poll(&ready, 1, rest) > 0 else { continue }
      guard let count = try? syscall("read", { Glibc.read(descriptor, &part, part.count) }), count > 0 else {
        return true
      }
      if bytes.count < limit { bytes += part[..<count] }
    }
  }
}
