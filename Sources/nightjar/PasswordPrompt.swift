import Appliance
import CLinux
import Glibc
import Platform
import Serving

/// Reads a password from standard input: on a terminal twice, without echo; otherwise one line.
enum PasswordPrompt {
  /// Returns the password for `name`.
  ///
  /// - Throws: ``ApplianceFailure``.
  static func password(of name: UserName) throws -> String {
    do {
      return try read(for: name)
    } catch let error as SystemFailure {
      let reason = SystemFailure.text(error.errorNumber)
      throw ApplianceFailure(kind: .inputOutput, description: "cannot read the password: \(reason)")
    }
  }

  private static func read(for name: UserName) throws -> String {
    guard isatty(STDIN_FILENO) == 1 else { return try line(from: STDIN_FILENO) }
    switch try askTwice(for: name) {
    case .line(let bytes): return try text(bytes)
    case .signal(let number): nightjar_end_by_signal(number)
    case .end: throw ApplianceFailure(kind: .usage, description: "no password was given; nothing was changed")
    }
  }

  /// Asks twice, on a terminal that shows nothing from before the first prompt until after the last answer: who pastes
  /// both lines at once types the second one between the prompts.
  private static func askTwice(for name: UserName) throws -> Answer {
    var former = termios()
    try syscall("tcgetattr") { tcgetattr(STDIN_FILENO, &former) }
    // Keys are read one by one, and the keys of signals as keys: however the input ends, the terminal is restored
    // first.
    var silent = former
    silent.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG | IEXTEN)
    let signals = try FileDescriptor(from: "signalfd", nightjar_stop_signals)
    try syscall("tcsetattr") { tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) }
    // What is left after the last answer may be a password too: the shell must not run it.
    defer { _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &former) }
    let first = ask("Password for \(name), 8 characters or more: ", endedBy: signals.number)
    guard case .line(let bytes) = first else { return first }
    // Checked here, so that an invalid password is not typed twice for nothing.
    _ = try UsersFile.User(name: name, password: text(bytes))
    let second = ask("The same again: ", endedBy: signals.number)
    guard case .line(let again) = second else { return second }
    guard try text(again) == text(bytes) else {
      throw ApplianceFailure(kind: .usage, description: "the two passwords differ; nothing was changed: try again")
    }
    return first
  }

  /// Asks on a terminal that is silent already, so that text that is typed at once is not shown either.
  private static func ask(_ prompt: String, endedBy signals: CInt) -> Answer {
    writeError(prompt)
    let answer = read(endedBy: signals)
    writeError("\n")
    return answer
  }

  private enum Answer {
    case line([UInt8])
    case signal(CInt)
    case end
  }

  private static func read(endedBy signals: CInt) -> Answer {
    var typed: [UInt8] = []
    var descriptors = [
      pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
      pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      _ = nightjar_poll(&descriptors, 2, -1)
      if descriptors[1].revents != 0 {
        let number = nightjar_next_signal(signals)
        if number != 0 { return .signal(number) }
      }
      guard descriptors[0].revents != 0 else { continue }
      var byte: UInt8 = 0
      let count = uninterrupted { Glibc.read(STDIN_FILENO, &byte, 1) }
      if count < 0, errno == EAGAIN { continue }
      guard count == 1 else { return .end }
      switch byte {
      case 0x0A, 0x0D: return .line(typed)
      case 0x03: return .signal(SIGINT)
      case 0x1C: return .signal(SIGQUIT)
      case 0x04 where typed.isEmpty: return .end
      case 0x08, 0x7F: removeCharacter(&typed)
      case 0x15: typed = []
      default: if typed.count <= UsersFile.User.passwordLimit { typed.append(byte) }
      }
    }
  }

  /// Removes the last character, of however many bytes.
  private static func removeCharacter(_ typed: inout [UInt8]) {
    while let last = typed.popLast(), last & 0xC0 == 0x80 {}
  }

  /// Returns one line, without its end. Input after the line is ignored.
  private static func line(from descriptor: CInt) throws -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while bytes.count <= UsersFile.User.passwordLimit {
      let count = try syscall("read") { Glibc.read(descriptor, &byte, 1) }
      if count == 0 || byte == 0x0A { break }
      bytes.append(byte)
    }
    if bytes.last == 0x0D { bytes.removeLast() }
    return try text(bytes)
  }

  private static func text(_ bytes: [UInt8]) throws -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ApplianceFailure(
        kind: .usage, description: "the password is not UTF-8: set the terminal's encoding to UTF-8")
    }
    return text
  }
}
