/// Metrics in Prometheus's text format, version 0.0.4.
package struct MetricsText: Sendable {
  /// The value of `Content-Type`.
  static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// The lines of each metric, which must stay together.
  private var lines = [[UInt8]](repeating: [], count: Metric.allCases.count)

  private static let places = Dictionary(
    uniqueKeysWithValues: Metric.allCases.enumerated().map { ($0.element, $0.offset) })

  /// Creates an empty text.
  package init() {}

  /// Adds one number; `values` are those of ``Metric/labels``, in their order. A number that is not finite is left out.
  package mutating func add(_ metric: Metric, _ values: [String], _ number: Double) {
    guard number.isFinite else { return }
    line(metric, "", values, nil, Self.text(number))
  }

  /// Adds one whole number.
  package mutating func add(_ metric: Metric, _ values: [String], _ number: some BinaryInteger) {
    line(metric, "", values, nil, "\(number)")
  }

  /// Adds a histogram.
  ///
  /// - Parameters:
  ///   - buckets: the upper limit of each bucket, and the number of values up to it; without the last one.
  ///   - count: the number of all values.
  ///   - sum: the sum of all values.
  package mutating func add(
    _ metric: Metric, _ values: [String], buckets: [(limit: Double, count: UInt64)], count: UInt64, sum: Double
  ) {
    for bucket in buckets { line(metric, "_bucket", values, Self.text(bucket.limit), "\(bucket.count)") }
    line(metric, "_bucket", values, "+Inf", "\(count)")
    line(metric, "_sum", values, nil, Self.text(sum))
    line(metric, "_count", values, nil, "\(count)")
  }

  /// The whole text, each metric under its `# HELP` and `# TYPE`.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(lines.reduce(0) { $0 + $1.count + ($1.isEmpty ? 0 : 256) })
    for metric in Metric.allCases {
      let lines = lines[Self.places[metric] ?? 0]
      guard !lines.isEmpty else { continue }
      bytes += "# HELP \(metric.rawValue) \(metric.help)\n# TYPE \(metric.rawValue) \(metric.kind.rawValue)\n".utf8
      bytes += lines
    }
    return bytes
  }

  private mutating func line(
    _ metric: Metric, _ suffix: String, _ values: [String], _ limit: String?, _ number: String
  ) {
    precondition(values.count == metric.labels.count, "a value for each label of \(metric.rawValue)")
    let place = Self.places[metric] ?? 0
    lines[place] += metric.rawValue.utf8
    lines[place] += suffix.utf8
    var separator = UInt8(ascii: "{")
    for (label, value) in zip(metric.labels, values) {
      lines[place].append(separator)
      lines[place] += label.utf8
      lines[place] += "=\"".utf8
      Self.append(escaped: value, to: &lines[place])
      lines[place].append(UInt8(ascii: "\""))
      separator = UInt8(ascii: ",")
    }
    if let limit {
      lines[place].append(separator)
      lines[place] += "le=\"\(limit)\"".utf8
      separator = UInt8(ascii: ",")
    }
    if separator == UInt8(ascii: ",") { lines[place].append(UInt8(ascii: "}")) }
    lines[place] += " \(number)\n".utf8
  }

  /// Escapes a backslash, a quote and the end of a line, which a label's value cannot contain.
  private static func append(escaped value: String, to line: inout [UInt8]) {
    for byte in value.utf8 {
      switch byte {
      case UInt8(ascii: "\\"): line += "\\\\".utf8
      case UInt8(ascii: "\""): line += "\\\"".utf8
      case UInt8(ascii: "\n"): line += "\\n".utf8
      default: line.append(byte)
      }
    }
  }

  /// Returns the shortest text that reads back the same, such as `0.005` and `3`.
  private static func text(_ number: Double) -> String {
    if let whole = Int64(exactly: number), whole.magnitude < 1 << 53 { return "\(whole)" }
    return "\(number)"
  }
}
