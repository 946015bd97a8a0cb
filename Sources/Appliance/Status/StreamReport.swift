import Encoding
import FoundationEssentials
import Media
import Platform
import Serving
import Streaming

/// The figures of a run: as a summary for people and as JSON for programs.
struct StreamReport {
  private let statistics: StreamStatistics
  private let document: Document

  /// Creates the report of a stream that has ended.
  init(_ stream: CameraStream, name: String) {
    statistics = stream.pipeline.statistics
    document = Document(statistics, stream.pipeline, name: name, sourceName: stream.opened.sourceName)
  }

  /// The summary, in a few lines.
  var text: String {
    let total = statistics.latencies[.total]
    var lines = [
      "\(StatusDisplay.clock(statistics.duration)): \(statistics.captured) frames captured, \(statistics.encoded) "
        + "encoded (\(statistics.keyFrames) key frames), \(statistics.sent) sent, \(statistics.dropped) dropped"
    ]
    if statistics.thinned > 0 { lines.append("  left out \(statistics.thinned) to spare the host") }
    for cause in DropCause.allCases {
      if let count = statistics.drops[cause], count > 0 { lines.append("  dropped \(count): \(cause.explanation)") }
    }
    let counters = statistics.encoder
    if counters.failovers > 0 {
      lines.append(
        "  the hardware encoder failed \(counters.failovers) times (\(counters.hangs) hangs) and returned "
          + "\(counters.recoveries) times")
    }
    if let camera = statistics.camera, camera.losses > 0 || camera.placeholderFrames > 0 {
      lines.append(
        "  the camera was lost \(camera.losses) times and opened again \(camera.reopenings) times; "
          + "\(camera.placeholderFrames) placeholders")
    }
    for destination in statistics.viewers {
      lines.append(
        "  \(destination.name): \(destination.packets) packets, \(destination.bytes) bytes"
          + (destination.lost > 0 ? ", \(destination.lost) packets not taken by the network" : "")
          + (destination.framesDropped > 0 ? ", \(destination.framesDropped) frames lost" : ""))
    }
    if let total, total.count > 0 {
      lines.append(
        "  capture to wire: p50 \(Terminal.decimal(total.median.milliseconds, digits: 2)) ms, "
          + "p99 \(Terminal.decimal(total.percentile99.milliseconds, digits: 2)) ms, "
          + "max \(Terminal.decimal(total.maximum.milliseconds, digits: 2)) ms")
      // With slices that leave one by one, the first packet leaves well before the last.
      if let first = statistics.latencies[.firstPacket], first.median.nanoseconds < total.median.nanoseconds * 9 / 10 {
        lines.append(
          "  to the first packet: p50 \(Terminal.decimal(first.median.milliseconds, digits: 2)) ms, "
            + "p99 \(Terminal.decimal(first.percentile99.milliseconds, digits: 2)) ms")
      }
    }
    return lines.joined(separator: "\n")
  }

  /// Returns one JSON object, keys sorted: of the only camera, or of each of `cameras` in the order of the
  /// configuration.
  static func json(of reports: [StreamReport], isOneOfSeveral: Bool) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Only non-finite numbers could fail, and there is none in counters and times.
    let documents = reports.map(\.document)
    let data =
      isOneOfSeveral ? try? encoder.encode(["cameras": documents]) : documents.first.flatMap { try? encoder.encode($0) }
    guard let data else { return "{}\n" }
    return String(decoding: data, as: UTF8.self) + "\n"
  }
}

/// The JSON document; times in milliseconds unless the name says otherwise.
private struct Document: Encodable {
  struct Source: Encodable {
    let name: String
    let width: Int
    let height: Int
    let fps: Double
    let pixelFormat: String
    let conversion: String
  }

  struct Encoder: Encodable {
    let name: String
    let bitrate: Int
    let framesImported: Int
    let framesCopied: Int
    let framesTurned: Int
    let overflows: Int
    let failovers: Int
    let hangs: Int
    let recoveries: Int
    let switches: Int
    let framesPassed: Int
    let handovers: Int
    let standbyBytes: Int?
  }

  struct Frames: Encodable {
    let captured: Int
    let encoded: Int
    let keyFrames: Int
    let thinned: Int
    let sent: Int
    let dropped: Int
    let droppedByCause: [String: Int]
  }

  struct Latency: Encodable {
    let frames: Int
    let p50: Double
    let p99: Double
    let max: Double
  }

  let name: String
  let source: Source
  let camera: StreamStatus.Camera?
  let encoder: Encoder
  let frames: Frames
  let packets: Int
  let bytes: Int
  let encodedBytes: Int
  let durationSeconds: Double
  let firstPacketMs: Double?
  let latencyMs: [String: Latency]
  let destinations: [StreamStatus.Destination]

  init(_ statistics: StreamStatistics, _ pipeline: Pipeline, name: String, sourceName: String) {
    self.name = name
    let format = pipeline.sourceFormat
    source = Source(
      name: sourceName, width: format.size.width, height: format.size.height, fps: format.frameRate.framesPerSecond,
      pixelFormat: format.pixelFormat.description, conversion: format.conversion)
    camera = statistics.camera.map(StreamStatus.Camera.init)
    let counters = statistics.encoder
    encoder = Encoder(
      name: statistics.encoderName, bitrate: pipeline.bitrate,
      framesImported: counters.imported, framesCopied: counters.copied, framesTurned: counters.turned,
      overflows: counters.overflows, failovers: counters.failovers, hangs: counters.hangs,
      recoveries: counters.recoveries,
      switches: counters.switches, framesPassed: counters.passed, handovers: counters.handovers,
      standbyBytes: pipeline.encoder.standbyMemory)
    frames = Frames(
      captured: statistics.captured, encoded: statistics.encoded, keyFrames: statistics.keyFrames,
      thinned: statistics.thinned, sent: statistics.sent, dropped: statistics.dropped,
      droppedByCause: Dictionary(uniqueKeysWithValues: statistics.drops.map { ($0.key.name, $0.value) }))
    packets = statistics.packets
    bytes = statistics.bytes
    encodedBytes = statistics.encodedBytes
    durationSeconds = statistics.duration.seconds
    firstPacketMs = statistics.firstPacket?.milliseconds
    latencyMs = Dictionary(
      uniqueKeysWithValues: statistics.latencies.map { stage, summary in
        (
          stage.rawValue,
          Latency(
            frames: summary.count, p50: summary.median.milliseconds, p99: summary.percentile99.milliseconds,
            max: summary.maximum.milliseconds)
        )
      })
    destinations = statistics.viewers.map(StreamStatus.Destination.init)
  }
}
