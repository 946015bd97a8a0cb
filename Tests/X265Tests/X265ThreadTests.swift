#if X265
  import Foundation
  import Glibc
  import Media
  import Platform
  import TestSupport
  import Testing
  import X265

  /// The threads of x265, whose pools would lower their priority and leave the processors that they are given.
  @Suite struct X265ThreadTests {
    /// The processors and the niceness of the thread that opens an encoder, and of the threads that are there afterwards
    /// and were not before. Threads of other suites have other attributes.
    @Test func `x265's thread has the processors and the niceness of the thread that opens it`() throws {
      let first = try #require(ProcessorSet.ofThread()?.numbers.first)
      let result = try onThread { () throws -> (process: String, own: [String], others: [[String]]) in
        // Of Linux, the niceness of the calling thread alone.
        #expect(setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 7) == 0)
        let process = try Self.attributes(of: "/proc/thread-self")[0]
        let before = try Self.threads()
        let processor = try #require(ProcessorSet([first]))
        let encoder = try processor.confining {
          try X265Encoder(
            EncoderConfiguration(
              size: PictureSize(width: 320, height: 240), frameRate: .thirty, bitrate: 500_000, color: .bt709,
              codec: .hevc))
        }
        let pool = try FramePool(size: PictureSize(width: 320, height: 240))
        try encoder.encode(pool.frame(), keyFrame: true) { _ in }
        let added = try Self.threads().subtracting(before)
        let own = try processor.confining { try Self.attributes(of: "/proc/thread-self") }
        // A thread of another suite may have ended.
        let others = added.compactMap { try? Self.attributes(of: "/proc/self/task/\($0)") }
        encoder.stop()
        return (process, own, others)
      }
      #expect(result.own == ["Cpus_allowed_list:\t\(first)", "7"])
      #expect(result.others.contains(result.own), "\(result.others)")
      // Nothing is on that processor alone with another niceness, and nothing has this niceness elsewhere. Where this process has
      // it alone, so has every thread.
      let isShared = result.process == result.own[0]
      for other in result.others where !isShared && other[0] == result.own[0] || Int(other[1]) ?? 0 >= 7 {
        #expect(other == result.own)
      }
    }

    /// Runs `body` on a thread of its own, whose attributes end with it.
    private func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) throws -> Result {
      let box = Box<Swift.Result<Result, any Error>>()
      do {
        let thread = try NamedThread("opener") { box.set(Swift.Result { try body() }) }
        _ = consume thread
      }
      return try #require(box.value).get()
    }

    private final class Box<Value: Sendable>: @unchecked Sendable {
      // Sendable: the thread that writes has ended before another one reads.
      private(set) var value: Value?
      func set(_ value: Value) { self.value = value }
    }

    private static func threads() throws -> Set<String> {
      Set(try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task"))
    }

    private static func attributes(of folder: String) throws -> [String] {
      let status = try KernelFile.text("\(folder)/status")
      let allowed = status.split(separator: "\n").map(String.init).filter { $0.hasPrefix("Cpus_allowed_list:") }
      // Field 19 is the niceness; the name in parentheses may have spaces.
      let stat = try KernelFile.text("\(folder)/stat")
      let fields = (stat.split(separator: ")").last ?? "").split(separator: " ")
      return allowed + [String(fields[16])]
    }
  }
#endif
