import Glibc

/// The measuring library of `Meter/meter.c`, where it was preloaded.
struct Meter {
  let resume: @convention(c) () -> Void
  let pause: @convention(c) () -> Void
  private let readNanoseconds: @convention(c) () -> UInt64
  private let readAllocations: @convention(c) () -> UInt64
  private var times: [UInt64] = []
  private var allocations: [UInt64] = []

  init?() {
    // RTLD_DEFAULT is a null pointer.
    guard let resume = dlsym(nil, "meter_resume"), let pause = dlsym(nil, "meter_pause"),
      let nanoseconds = dlsym(nil, "meter_nanoseconds"), let allocated = dlsym(nil, "meter_allocations")
    else { return nil }
    self.resume = unsafeBitCast(resume, to: (@convention(c) () -> Void).self)
    self.pause = unsafeBitCast(pause, to: (@convention(c) () -> Void).self)
    readNanoseconds = unsafeBitCast(nanoseconds, to: (@convention(c) () -> UInt64).self)
    readAllocations = unsafeBitCast(allocated, to: (@convention(c) () -> UInt64).self)
    // A meter that sees nothing proves nothing.
    self.resume()
    UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 16).deallocate()
    withExtendedLifetime([UInt64](repeating: readNanoseconds(), count: 100)) {}
    self.pause()
    guard readAllocations() > 0 else { return nil }
    _ = readNanoseconds()
  }

  /// Ends a frame's account.
  mutating func endFrame() {
    times.append(readNanoseconds())
    allocations.append(readAllocations())
  }

  /// Prints what a steady frame costs: the median of all but the first ten.
  func report() {
    let steady = times.dropFirst(10).sorted()
    guard !steady.isEmpty else { return }
    print("overhead-ns=\(steady[steady.count / 2])")
    print("steady-allocations=\(allocations.dropFirst(10).reduce(0, +))")
  }
}
