import Foundation
import Glibc
public import Media

/// What this process holds at the moment.
public enum Footprint {
  /// Memory of its own in RAM, bytes.
  public static func residentBytes() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    guard let pages else { throw CocoaError(.fileReadCorruptFile) }
    return pages * Int(sysconf(CInt(_SC_PAGESIZE)))
  }

  /// Open descriptors.
  public static func descriptors() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }
}

/// What a long run must not let grow, looked at again and again while the same work is under way.
public struct GrowthWatch {
  private struct Look {
    let residentBytes: Int
    let descriptors: Int
    let latency: MediaTime
  }
  private var looks: [Look] = []

  /// Before the first look.
  public init() {}

  /// Looks once; `latency` is the median since the last look.
  public mutating func look(latency: MediaTime) throws {
    looks.append(
      Look(residentBytes: try Footprint.residentBytes(), descriptors: try Footprint.descriptors(), latency: latency))
  }

  /// What became of it; nil after fewer than ten looks.
  public var growth: Growth? {
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
public struct Growth: CustomStringConvertible {
  fileprivate let looks: Int
  /// Memory in RAM.
  public let residentKiB: (early: Int, late: Int)
  /// Microseconds.
  public let latency: (early: Int, late: Int)
  /// At each look.
  public let descriptors: [Int]

  /// One line of it.
  public var description: String {
    """
    first and last third of \(looks) looks: resident memory \(residentKiB.early) and \(residentKiB.late) KiB, median \
    latency \(latency.early) and \(latency.late) µs; descriptors \(descriptors.min() ?? 0) to \(descriptors.max() ?? 0)
    """
  }
}
