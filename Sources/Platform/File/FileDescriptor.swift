import CLinux
public import Glibc

/// Makes a system call, and repeats it while a signal interrupts it (`EINTR`). Returns its result; `errno` says more where
/// it is less than 0.
@inlinable
package func uninterrupted<Result: SignedInteger>(_ call: () -> Result) -> Result {
  while true {
    let result = call()
    if result >= 0 || errno != EINTR { return result }
  }
}

/// Makes a system call, and repeats it while a signal interrupts it (`EINTR`). Returns its result, which is 0 or more.
///
/// - Parameter name: the call, for the message.
/// - Throws: ``SystemFailure`` with the `errno` of the call.
@discardableResult
package func syscall<Result: SignedInteger>(
  _ name: String, _ call: () -> Result
) throws(SystemFailure) -> Result {
  let result = uninterrupted(call)
  guard result >= 0 else { throw SystemFailure(name) }
  return result
}

/// A kernel descriptor with one owner, which closes it.
package struct FileDescriptor: ~Copyable {
  /// The descriptor's number, lent: valid while the owner lives.
  package let number: CInt

  /// Takes ownership of an open descriptor.
  package init(owning number: CInt) { self.number = number }

  /// Opens the file at `path`; no child program inherits it.
  ///
  /// - Throws: ``SystemFailure`` called `open`.
  package init(_ path: String, _ flags: CInt, mode: UInt32 = 0) throws(SystemFailure) {
    // A string that is passed directly is copied into an array first.
    number = try syscall("open") { path.withCString { Glibc.open($0, flags | O_CLOEXEC, mode) } }
  }

  /// Takes ownership of the descriptor that a system call opens.
  ///
  /// - Parameter name: the call, for the message.
  /// - Throws: ``SystemFailure`` with the `errno` of the call.
  package init(from name: String, _ open: () -> CInt) throws(SystemFailure) { number = try syscall(name, open) }

  deinit { Glibc.close(number) }

  /// Returns the open descriptor and gives up its ownership.
  package consuming func take() -> CInt {
    let number = number
    discard self
    return number
  }

  /// Closes the descriptor and reports errors that some file systems report only then.
  ///
  /// - Throws: ``SystemFailure`` called `close`.
  package consuming func close() throws(SystemFailure) {
    // Not repeated after `EINTR`: Linux has released the number, and another thread may have it already.
    guard Glibc.close(take()) == 0 else { throw SystemFailure("close") }
  }

  /// Returns the next bytes of the file, at most `limit`.
  ///
  /// - Throws: ``SystemFailure`` called `read`.
  package borrowing func read(upTo limit: Int) throws(SystemFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    // A file that the kernel generates, as below /proc, does not tell its size beforehand.
    var block = [UInt8](repeating: 0, count: min(limit, 65_536))
    while bytes.count < limit {
      let count = try syscall("read") { Glibc.read(number, &block, min(block.count, limit - bytes.count)) }
      if count == 0 { break }
      bytes += block[..<count]
    }
    return bytes
  }

  /// Writes all of `bytes` to a descriptor.
  ///
  /// - Throws: ``SystemFailure`` called `write`; `EIO` where the descriptor accepts no more bytes without a reason.
  package static func write(_ bytes: RawSpan, to number: CInt) throws(SystemFailure) {
    try bytes.withUnsafeBytes { bytes throws(SystemFailure) in
      var written = 0
      while written < bytes.count {
        let count = try syscall("write") {
          Glibc.write(number, bytes.baseAddress.map { $0 + written }, bytes.count - written)
        }
        guard count > 0 else { throw SystemFailure("write", errorNumber: EIO) }
        written += count
      }
    }
  }
}
