public import Glibc

/// The figures that ffmpeg's `psnr` filter gives at its end, over all planes, in dB; infinite where the pictures are
/// the same.
package struct PictureQuality: Sendable {
  /// Of all pictures together.
  package let mean: Double
  /// Of the worst one.
  package let lowest: Double

  /// Reads what ffmpeg has logged.
  ///
  /// - Throws: ``Missing`` where the filter has said nothing.
  package init(log: String) throws {
    guard let words = log.split(separator: "\n").last(where: { $0.contains("PSNR") })?.split(separator: " ") else {
      throw Missing(log: log)
    }
    func value(_ name: String) throws -> Double {
      guard let word = words.first(where: { $0.hasPrefix(name + ":") }),
        let value = Double(word.dropFirst(name.count + 1))
      else { throw Missing(log: log) }
      return value
    }
    mean = try value("average")
    lowest = try value("min")
  }

  /// There is no such line; the log says why.
  package struct Missing: Error, CustomStringConvertible {
    let log: String
    /// The log.
    package var description: String { "no PSNR: \(log)" }
  }
}

/// Peak signal-to-noise ratio of samples in decibels; infinite where both are the same, 0 where their counts differ.
@inlinable package func psnr(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Double {
  guard left.count == right.count, !left.isEmpty else { return 0 }
  var sum = 0
  for (a, b) in zip(left, right) { sum += (Int(a) - Int(b)) * (Int(a) - Int(b)) }
  return sum == 0 ? .infinity : 10 * log10(255 * 255 * Double(left.count) / Double(sum))
}
