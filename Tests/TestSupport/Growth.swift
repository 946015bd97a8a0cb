import Foundation
import Glibc
import Media
package import Platform

/// The resources that this process holds at the moment.
package enum Footprint {
  /// Memory of its own in RAM, bytes.
  package static func residentBytes() throws -> Int {
    let text = try KernelFile.text("/proc/self/statm")
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    guard let pages else { throw CocoaError(.fileReadCorruptFile) }
    return pages * Int(sysconf(CInt(_SC_PAGESIZE)))
  }

  /// Open descriptors.
  package static func descriptors() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }
}

/// The resources that a long run must not let grow, looked at again and again while the same work is under way.
package struct GrowthWatch {
  private struct Look {
    let residentBytes: Int
    let descriptors: Int
    let latency: Duration
  }
  private var looks: [Look] = []

  /// Before the first look.
  package init() {}

  /// Looks once; `latency` is the median since the last look.
  package mutating func look(latency: Duration) throws {
    looks.append(
      Look(residentBytes: try Footprint.residentBytes(), descriptors: try Footprint.descriptors(), latency: latency))
  }

  /// The growth; nil after fewer than ten looks.
  package var growth: Growth? {
    // The first fifth warms up: the heap, the sockets' memory, the encoder.
    let settled = looks.dropFirst(looks.count / 5)
    guard settled.count >= 8 else { return nil }
    let (early, late) = (settled.prefix(settled.count / 3), settled.suffix(settled.count / 3))
    func medians(_ value: (Look) -> Int) -> (early: Int, late: Int) {
      let (early, late) = (early.map(value).sorted(), late.map(value).sorted())
      return (early[early.count / 2], late[late.count / 2])
    }
    return Growth(
      looks: settled.count, residentKiB: medians { $0.residentBytes / 1024 },
      latency: medians { Int($0.latency.nanoseconds / 1000) },
      descriptors: settled.map(\.descriptors))
  }
}

/// The medians of the first third of a watch's looks beside those of the last.
package struct Growth: CustomStringConvertible {
  fileprivate let looks: Int
  /// Memory in RAM.
  package let residentKiB: (early: Int, late: Int)
  /// Microseconds.
  package let latency: (early: Int, late: Int)
  /// At each look.
  package let descriptors: [Int]

  /// One line of it.
  package var description: String {
    """
    first and last third of \(looks) looks: resident memory \(residentKiB.early) and \(residentKiB.late) KiB, median \
    latency \(latency.early) and \(latency.late) µs; descriptors \(descriptors.min() ?? 0) to \(descriptors.max() ?? 0)
    """
  }
}
