import Foundation
import TestSupport
import Testing

/// The metrics of a running program, by `/metrics`.
struct Scrape {
  /// The page as it came.
  let text: String
  /// Each number by its name and labels, as in `nightjar_viewers{camera="camera",kind="guest"}`.
  let samples: [String: Double]

  /// Asks by the control socket.
  init(_ socket: String, in directory: TemporaryDirectory) throws {
    let result = try Subprocess.run(
      ["curl", "-sS", "--max-time", "60", "--unix-socket", socket, "http://localhost/metrics"], in: directory)
    #expect(result.status == 0, "\(result.error)")
    text = result.outputText
    var samples: [String: Double] = [:]
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      guard let space = line.lastIndex(of: " ") else { continue }
      let number = try #require(Double(line[line.index(after: space)...]), "\(line)")
      #expect(samples.updateValue(number, forKey: String(line[..<space])) == nil, "twice: \(line)")
    }
    self.samples = samples
  }

  /// The number of a metric of the camera called `camera`; nil where it is not told.
  subscript(name: String) -> Double? { samples["\(name){camera=\"camera\"}"] }

  /// The values that only rise: counters, and the counts and sums of histograms.
  var counters: [String: Double] {
    var types: [Substring: Substring] = [:]
    for line in text.split(separator: "\n") where line.hasPrefix("# TYPE ") {
      let words = line.split(separator: " ")
      types[words[2]] = words[3]
    }
    return samples.filter { sample in
      let name = sample.key.prefix { $0 != "{" }
      if types[name] == "counter" { return true }
      return ["_bucket", "_sum", "_count"].contains {
        name.hasSuffix($0) && types[name.dropLast($0.count)] == "histogram"
      }
    }
  }

  /// The mean of a histogram between an earlier scrape and this one, in seconds.
  func mean(of histogram: String, since earlier: Scrape) -> Double {
    let sum = (self[histogram + "_sum"] ?? 0) - (earlier[histogram + "_sum"] ?? 0)
    let count = (self[histogram + "_count"] ?? 0) - (earlier[histogram + "_count"] ?? 0)
    return count > 0 ? sum / count : .nan
  }
}
