import Glibc

/// A system call's failure whose reason is not in the request.
public struct SystemFailure: Failure {
  /// The system call, such as `poll`.
  public let call: String
  /// The `errno` of the call.
  public let errorNumber: CInt

  /// Creates the failure of `call` with `errorNumber`; nil uses the thread's `errno`.
  public init(_ call: String, errorNumber: CInt? = nil) {
    self.errorNumber = errorNumber ?? errno
    self.call = call
  }

  /// A one-line message for the terminal.
  public var description: String { "\(call): \(Self.text(errorNumber))" }

  /// The kind of failure.
  public var kind: FailureKind { .system }

  /// Returns the system's text for an `errno`.
  public static func text(_ errorNumber: CInt) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(errorNumber, base, 256) == 0 else {
        return "error \(errorNumber)"
      }
      return String(cString: base)
    }
  }
}
