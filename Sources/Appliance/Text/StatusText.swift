import Encoding
import Media
import Platform
package import Serving

/// The text form of a status.
package enum StatusText {
  /// Returns the status of all cameras.
  package static func text(_ status: ApplianceStatus) -> String {
    var lines = ["running      " + StatusDisplay.clock(Duration(seconds: status.uptimeSeconds))]
    if status.reloads > 0 { lines.append("reloaded     \(times(status.reloads))") }
    if status.memoryLocked { lines.append("memory       locked") }
    for listener in status.listeners {
      let address = IPAddress.bracketed(listener.address)
      lines.append("listening    \(listener.scheme) at \(address) port \(listener.port)")
    }
    for service in status.announcements {
      let what = "'\(service.name)' (\(service.type), port \(service.port))"
      lines.append(
        service.state == .announced
          ? "announced    \(what)" : "not announced \(what): \(service.reason ?? service.state.rawValue)")
    }
    for camera in status.cameras {
      if Set(status.cameras.map(\.name) + status.absent.map(\.name)).count > 1 {
        lines += ["", "name         \(camera.name)"]
      }
      lines += self.lines(of: camera)
    }
    for camera in status.absent where !status.cameras.contains(where: { $0.name == camera.name }) {
      lines += ["", "name         \(camera.name)", "             does not stream: \(camera.reason)"]
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Returns the status of one camera.
  package static func text(_ status: StreamStatus) -> String {
    (["name         \(status.name)", "running      " + StatusDisplay.clock(Duration(seconds: status.uptimeSeconds))]
      + lines(of: status)).joined(separator: "\n") + "\n"
  }

  private static func lines(of status: StreamStatus) -> [String] {
    let (source, orientation, encoder) = (status.source, status.orientation, status.encoder)
    let frames = status.frames
    var lines: [String] = []
    if let health = status.health {
      lines.append("health       \(health.state.rawValue)\(health.reason.map { ": \($0)" } ?? "")")
    }
    lines.append("source       \(source.name), \(source.width)x\(source.height) at \(decimal(source.fps)) fps")
    if let camera = status.camera {
      lines.append(
        "camera       \(camera.state) for \(StatusDisplay.clock(Duration(seconds: camera.seconds))); lost "
          + "\(times(camera.losses)), opened again \(times(camera.reopenings)), "
          + "\(camera.placeholderFrames) placeholders")
      if let obstacle = camera.obstacle { lines.append("             \(obstacle)") }
    }
    if let sound = status.sound { lines += self.lines(of: sound) }
    lines += [
      "orientation  \(orientation.degrees) degrees\(orientation.mirrored ? ", mirrored" : ""), sent as \(orientation.width)x\(orientation.height); "
        + "encoders exchanged \(times(orientation.switches))",
      "encoder      \(encoder.name)\(encoder.bitrate.map { ", " + Terminal.bitrate(Double($0)) } ?? ""); failed over "
        + times(encoder.failovers),
    ]
    if let small = status.smallRendition { lines.append(line(of: small)) }
    if let h264 = status.h264Rendition {
      lines.append(
        "             H.264 of \(h264.width)x\(h264.height) for viewers without HEVC: "
          + (h264.running ? h264.encoder : h264.failure ?? "nobody needs it now")
          + "; \(h264.encoded) encoded, \(h264.sent) sent, \(h264.dropped) dropped")
    }
    lines += [
      "frames       \(frames.captured) captured, \(frames.encoded) encoded (\(frames.keyFrames) key frames), "
        + "\(frames.sent) sent, \(frames.dropped) dropped"
    ]
    if frames.unwatched > 0 { lines.append("             \(frames.unwatched) not encoded while nobody watched") }
    if frames.thinned > 0 { lines.append("             left out \(frames.thinned) to spare the host") }
    for (cause, count) in frames.droppedByCause.sorted(by: { $0.key < $1.key }) where count > 0 {
      let known = DropCause.allCases.first { $0.name == cause }
      lines.append("             dropped \(count): \(known?.explanation ?? cause)")
    }
    if let controls = status.controls { lines += self.lines(of: controls) }
    let software = EncoderSelector.softwareCodec(ofEncoder: encoder.name)
    // While hardware encodes, the library is the one that stands by for the camera's codec.
    let codec = encoder.codec.flatMap(VideoCodec.init(rawValue:)) ?? software ?? .h264
    let library = codec.softwareLibrary
    if let quality = status.quality { lines += self.lines(of: quality, library) }
    if let adaptation = status.adaptation { lines += self.lines(of: adaptation, library) }
    if !status.threads.isEmpty { lines.append("threads      " + Self.text(of: status.threads)) }
    if !status.without.isEmpty { lines.append("without      " + status.without.joined(separator: ", ")) }
    for destination in status.destinations {
      lines += self.lines(of: destination, label: destination.kind == "rtsp" ? "viewer       " : "destination  ")
    }
    for missing in status.missingDestinations ?? [] {
      lines += ["missing      \(missing.url)", "             \(missing.reason ?? "nightjar looks for it")"]
    }
    let pictures = status.pictures
    if pictures.viewers + pictures.coded + pictures.passed > 0 {
      let taking = pictures.snapshotViewers ?? 0
      lines.append(
        "pictures     \(pictures.viewers - taking) watching by MJPEG, "
          + (taking > 0 ? "\(taking) taking snapshots, " : "")
          + "\(pictures.coded) JPEGs made, \(pictures.passed) of the camera's own, \(pictures.skipped) frames skipped")
    }
    return lines
  }

  private static func line(of small: StreamStatus.SmallRendition) -> String {
    var line =
      "             \(small.width)x\(small.height) for weak networks: "
      + (small.running ? small.encoder : small.failure ?? "nobody needs it now")
      + "; \(small.encoded) encoded, \(small.dropped) dropped"
    if small.missed > 0 { line += ", waited for in vain \(times(small.missed))" }
    if small.failures > 0 { line += "; failed \(times(small.failures))" }
    if small.failovers > 0 { line += "; failed over \(times(small.failovers))" }
    return line
  }

  /// Returns `nj-capture rr 5, nj-encode, nj-send rr 5; processors 0-3`.
  private static func text(of threads: [StreamStatus.Thread]) -> String {
    let places = Set(threads.map(\.cpus))
    let words = threads.map { thread in
      thread.name + (thread.policy == "other" ? "" : " \(thread.policy)")
        + (thread.isRealTime ? " \(thread.priority)" : "") + (places.count > 1 ? " on \(thread.cpus)" : "")
    }
    return words.joined(separator: ", ") + (places.count == 1 ? "; processors \(threads[0].cpus)" : "")
  }

  /// Returns the line for a viewer of JPEG pictures.
  package static func pictureLine(of delivery: StreamStatus.Destination, label: String) -> String {
    "\(label)\(delivery.url): \(delivery.packets) pictures, \(delivery.bytes) bytes"
  }

  /// Returns the lines for one destination or RTSP viewer: one for the packets sent, and another for the viewer's
  /// report.
  package static func lines(of destination: StreamStatus.Destination, label: String, indent: String = "             ")
    -> [String]
  {
    let tracks = destination.tracks ?? []
    let sound = tracks.contains("sound") ? " (\(tracks.joined(separator: " and ")))" : ""
    var lines = [
      "\(label)\(destination.url)\(sound): \(destination.packets) packets, \(destination.bytes) bytes, "
        + "\(destination.packetsLost) packets lost, \(destination.framesDropped) frames lost"
        + (destination.slow ? "; too slow for the stream" : "")
    ]
    if destination.codec == "h264" { lines.append("\(indent)gets H.264 instead of HEVC") }
    if let cause = destination.stopped {
      let words = [
        "silence": "it no longer reports", "media_timeout": "nothing reaches it",
        "congestion": "its network is congested",
      ]
      lines.append("\(indent)stopped for a while: \(words[cause] ?? cause)")
    }
    let pictures = destination.rendition.map { ", so it gets \($0)" } ?? ""
    if let bandwidth = destination.bandwidth {
      let queue = destination.queueMs.map { ", packets wait \(Terminal.decimal($0, digits: 0)) ms on it" } ?? ""
      lines.append("\(indent)weak network: it takes \(Terminal.bitrate(Double(bandwidth)))\(queue)\(pictures)")
    } else if let rendition = destination.rendition {
      lines.append("\(indent)weak network: \(rendition)")
    }
    if let missed = destination.smallPicturesMissed {
      lines.append("\(indent)it waited for small pictures in vain \(times(missed)), and went on with full ones")
    }
    if let reception = destination.reception {
      lines.append(
        // Fewer than none is possible: RFC 3550 section 6.4.1 counts duplicates as received.
        "\(indent)it reports \(max(0, reception.packetsLost)) packets lost, "
          + "\(percent(reception.fractionLost)) of late, "
          + "jitter \(Terminal.decimal(reception.jitterMs, digits: 1)) ms"
          + (reception.roundTripMs.map { ", round trip \(Terminal.decimal($0, digits: 1)) ms" } ?? ""))
    }
    return lines
  }

  private static func lines(of quality: StreamStatus.Quality, _ library: String) -> [String] {
    let choice =
      if let preset = quality.x264Preset {
        "\(library)'s \(preset)"
      } else {
        "VA-API's level \(quality.vaapiQuality ?? 0) of \(quality.vaapiQualityLevels ?? 0), 1 is the best"
      }
    var words = ["\(choice), changed \(times(quality.changes))"]
    if let threads = quality.threads { words.append("\(threads) sliced threads") }
    if let time = quality.encodeP99Ms {
      words.append(
        "99 of 100 frames within \(Terminal.decimal(time, digits: 1)) ms (limit "
          + "\(Terminal.decimal(quality.encodeLimitMs, digits: 1)))")
    }
    if let processors = quality.processors, let budget = quality.processorBudget {
      words.append(
        "\(Terminal.decimal(processors, digits: 2)) processors (limit \(Terminal.decimal(budget, digits: 2)))")
    }
    let reason: String? =
      switch quality.reason {
      case "room": "there is room for more"
      case "late": "frames took longer than a frame interval"
      case "slow": "encoding takes too long"
      case "budget": "the program used too many processors"
      case "heat": "the host is hot"
      default: nil
      }
    return ["quality      " + words.joined(separator: ", ")]
      + (reason.map { ["             last change: \($0)"] } ?? [])
  }

  private static func lines(of adaptation: StreamStatus.Adaptation, _ library: String) -> [String] {
    var machine: [String] = []
    if let state = adaptation.thermalState, let temperature = adaptation.temperature {
      machine.append("\(Terminal.decimal(temperature, digits: 0)) °C (\(state))")
    }
    if let load = adaptation.load { machine.append("encoding takes \(percent(load)) of the time") }
    var limits: [String] = []
    if let preset = adaptation.x264Preset { limits.append("\(library)'s \(preset)") }
    if let rate = adaptation.maximumFps { limits.append("\(decimal(rate)) fps at most") }
    if let size = adaptation.maximumSize { limits.append("\(size) at most") }
    if adaptation.bitrateShare < 1 { limits.append("\(percent(adaptation.bitrateShare)) of the bitrate") }
    return (machine.isEmpty ? [] : ["host         " + machine.joined(separator: ", ")])
      + (limits.isEmpty ? [] : ["reduced      " + limits.joined(separator: ", ")])
  }

  private static func lines(of controls: StreamStatus.Controls) -> [String] {
    var words: [String] = []
    if let isNight = controls.night {
      words.append((isNight ? "night" : "day") + (controls.brightness.map { ", brightness \($0) of 255" } ?? ""))
    }
    if controls.sensorLock != "off" {
      words.append(controls.sensorLock == "locked" ? "sensor locked" : "sensor settling, to be locked")
    }
    return (words.isEmpty ? [] : ["controls     " + words.joined(separator: "; ")])
      + controls.complaints.map { "             not set: \($0)" }
  }

  /// Returns `once`, `3 times`.
  static func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }

  /// Returns `12.5 %`.
  package static func percent(_ share: Double) -> String { Terminal.decimal(share * 100, digits: 1) + " %" }

  /// Returns `30`, `29.97`.
  private static func decimal(_ value: Double) -> String {
    Terminal.decimal(value, digits: value == value.rounded() ? 0 : 2)
  }
}
