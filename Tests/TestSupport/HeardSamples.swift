import Foundation

/// The samples that a player has written into a file: 16 bits each, in this machine's byte order.
package struct HeardSamples {
  private let samples: [Int16]

  /// Reads what is in the file so far, after `header` bytes.
  package init(file: String, header: Int = 0) {
    let bytes = (try? Data(contentsOf: URL(fileURLWithPath: file))) ?? Data()
    samples = bytes.dropFirst(header).withUnsafeBytes { bytes in
      (0..<(bytes.count / 2)).map { bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self) }
    }
  }

  /// The seconds of sound at 48 kHz.
  package func seconds(channels: Int) -> Double { Double(samples.count / channels) / 48_000 }

  /// The number of beeps of the test tone that have begun: loud sound after a quarter of a second of silence.
  package func beeps(channels: Int) -> Int {
    var (count, quiet) = (0, 48_000)
    for index in stride(from: 0, to: samples.count, by: channels) {
      guard abs(Int(samples[index])) > 4000 else {
        quiet += 1
        continue
      }
      if quiet > 12_000 { count += 1 }
      quiet = 0
    }
    return count
  }
}
