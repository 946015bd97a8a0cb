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

  /// Returns how many values of a histogram of `camera` came since an earlier scrape, by the limits of its buckets in
  /// seconds: each bucket has those of the lower ones too, and the last one, without a limit, has all.
  func buckets(of histogram: String, since earlier: Scrape) -> [Double: Double] {
    let start = "\(histogram)_bucket{camera=\"camera\",le=\""
    var counts: [Double: Double] = [:]
    for (key, count) in samples where key.hasPrefix(start) {
      let limit = key.dropFirst(start.count).prefix { $0 != "\"" }
      counts[limit == "+Inf" ? .infinity : Double(limit) ?? .nan] = count - (earlier.samples[key] ?? 0)
    }
    return counts
  }

  /// Returns the least limit within which there is that share of what the buckets have.
  static func limit(of share: Double, in buckets: [Double: Double]) -> Double {
    let all = buckets[.infinity] ?? 0
    return buckets.filter { $0.value >= all * share }.keys.min() ?? .infinity
  }
}
