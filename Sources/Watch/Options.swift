import ArgumentParser
import CLinux
import Glibc
import Platform
import Synchronization

/// A length of time on the command line: `500ms`, `60s`, `5m`, `1h`.
struct TimeLength: ExpressibleByArgument, Equatable {
  let duration: Duration

  init?(argument: String) {
    let units: [(String, Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600)]
    guard let (suffix, factor) = units.first(where: { argument.hasSuffix($0.0) }),
      let number = Double(argument.dropLast(suffix.count)), number.isFinite, number > 0, number * factor <= 86_400 * 366
    else { return nil }
    duration = Duration(seconds: number * factor)
  }
}

/// A SHA-256 fingerprint on the command line: 64 hexadecimal digits, with or without colons.
struct Fingerprint: ExpressibleByArgument, Equatable {
  let bytes: [UInt8]

  init?(argument: String) {
    let digits = Array(argument.filter { $0 != ":" })
    guard digits.count == 64 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: 64, by: 2) {
      guard let high = digits[index].hexDigitValue, let low = digits[index + 1].hexDigitValue else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    self.bytes = bytes
  }
}

/// SIGINT and SIGTERM, which end the program with its summary.
enum Signals {
  /// The descriptor that wakes the thread.
  private final class Bell: Sendable {
    let interrupt: Interrupt

    init() throws(SystemFailure) { interrupt = try Interrupt() }
  }

  /// The descriptor that the handler writes to; -1 before there is one.
  private static let descriptor = Atomic<CInt>(-1)

  /// Calls `body` for each signal, whichever thread the kernel gives it to.
  static func call(_ body: @escaping @Sendable () -> Void) {
    // A pipe whose reader has ended is a file that cannot be written, and no end without a word.
    signal(SIGPIPE, SIG_IGN)
    // Without a descriptor or a thread, the signals end the program as they always do.
    do throws(SystemFailure) {
      let bell = try Bell()
      try NamedThread("nj-signals") {
        while true {
          _ = bell.interrupt.wait(until: Instant(nanoseconds: .max))
          bell.interrupt.clear()
          body()
        }
      }.detach()
      descriptor.store(bell.interrupt.fileDescriptor, ordering: .releasing)
    } catch {
      return
    }
    for number in [SIGINT, SIGTERM] {
      signal(number) { _ in
        var one: UInt64 = 1
        _ = write(Signals.descriptor.load(ordering: .acquiring), &one, 8)
      }
    }
  }
}

/// Standard error: lines, and a live line at the end where a person reads it.
enum StandardError {
  /// `true` if a person reads it.
  static let isTerminal = isatty(STDERR_FILENO) == 1

  /// Writes a line in place of the live line.
  static func write(_ line: String) { put((isTerminal ? "\r\u{1b}[K" : "") + line + "\n") }

  /// Replaces the live line, cut to the terminal's width; does nothing without a terminal.
  static func live(_ line: String) {
    guard isTerminal else { return }
    var size = winsize()
    let width = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    put("\r\(line.prefix(width - 1))\u{1b}[K")
  }

  /// Sounds the terminal's bell; does nothing without a terminal.
  static func bell() { if isTerminal { put("\u{7}") } }

  private static func put(_ text: String) {
    // Nobody is left to tell where standard error cannot be written.
    try? FileDescriptor.write(Array(text.utf8).span.bytes, to: STDERR_FILENO)
  }
}

/// Returns a number with that many digits after the point.
func decimal(_ value: Double, _ digits: Int) -> String {
  guard value.isFinite, abs(value) < 1e12 else { return "-" }
  let factor = (0..<digits).reduce(1) { product, _ in product * 10 }
  let scaled = Int((abs(value) * Double(factor)).rounded())
  let rest = String(scaled % factor)
  let sign = value < 0 && scaled != 0 ? "-" : ""
  return "\(sign)\(scaled / factor)"
    + (digits > 0 ? "." + String(repeating: "0", count: digits - rest.count) + rest : "")
}
