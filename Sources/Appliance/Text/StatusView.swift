package import Platform
package import Serving

/// The live view of a status: within 80 columns.
package struct StatusView {
  private var last: (status: ApplianceStatus, time: Instant)?

  /// Creates a view that has shown nothing.
  package init() {}

  /// Forgets the last status: rates need two answers of the same server.
  package mutating func forget() { last = nil }

  /// Returns the lines for a status that was received at `now`.
  package mutating func lines(of status: ApplianceStatus, only name: String?, at now: Instant) -> [String] {
    // Another run counts from zero.
    if let last, status.uptimeSeconds < last.status.uptimeSeconds { forget() }
    defer { last = (status, now) }
    let cameras = status.cameras.filter { name == nil || $0.name == name }
    let destinations = cameras.reduce(0) { $0 + $1.destinations.count(where: \.isDestination) }
    let viewers = cameras.reduce(-destinations) {
      $0 + $1.destinations.count + $1.pictures.viewers + ($1.sound?.mp3Listeners ?? 0)
    }
    var lines = [
      "nightjar  " + StatusDisplay.clock(Duration(seconds: status.uptimeSeconds))
        + "  \(cameras.count) \(cameras.count == 1 ? "camera" : "cameras")"
        + "  \(viewers) \(viewers == 1 ? "viewer" : "viewers")"
        + (destinations > 0 ? "  \(destinations) \(destinations == 1 ? "destination" : "destinations")" : "")
        + (status.reloads > 0 ? "  reloaded \(StatusText.times(status.reloads))" : "")
    ]
    let absent = status.absent.filter { camera in
      (name == nil || camera.name == name) && !cameras.contains { $0.name == camera.name }
    }
    if let name, cameras.isEmpty, absent.isEmpty { lines.append("there is no camera \(name) now") }
    for camera in cameras { lines += self.lines(of: camera, at: now) }
    for camera in absent { lines += ["", Self.columns((camera.name, 20), ("does not stream: \(camera.reason)", 60))] }
    return lines
  }

  private func lines(of camera: StreamStatus, at now: Instant) -> [String] {
    let former = last?.status.cameras.first { $0.name == camera.name && $0.uptimeSeconds <= camera.uptimeSeconds }
    let seconds = last.map { (now - $0.time).seconds } ?? 0
    func rate(_ new: Int, _ old: Int?) -> Double? {
      guard let old, new >= old, seconds > 0 else { return nil }
      return Double(new - old) / seconds
    }
    let isResting =
      camera.frames.encoded == former?.frames.encoded && camera.frames.unwatched > former?.frames.unwatched ?? .max
    let frames = rate(camera.frames.encoded, former?.frames.encoded).map { Terminal.decimal($0, digits: 1) } ?? "-"
    let load = camera.adaptation?.load.map(StatusText.percent) ?? "-"
    var lines = [
      "",
      Self.columns(
        (camera.name, 20), (camera.health?.state.rawValue ?? camera.camera?.state ?? "live", 13),
        ("\(camera.orientation.width)x\(camera.orientation.height)", 11),
        (isResting ? "encoder rests" : "\(frames) fps", 14), ("dropped \(camera.frames.dropped)", 20)),
      Self.columns(
        ("  \(camera.encoder.name)", 45), ("load \(load)", 14),
        (camera.encoder.bitrate.map { Terminal.bitrate(Double($0)) } ?? "fixed quality", 16)),
    ]
    if let health = camera.health, !health.healthy, let reason = health.reason { lines.append("  \(reason)") }
    if let sound = camera.sound {
      lines.append("  sound " + LevelBar.text(sound))
      if sound.mp3Listeners > 0 { lines.append("  \(sound.mp3Listeners) listening by MP3") }
    }
    if camera.pictures.viewers > 0 {
      let pictures = camera.pictures.coded + camera.pictures.passed
      let old = former.map { $0.pictures.coded + $0.pictures.passed }
      let made = rate(pictures, old).map { Terminal.decimal($0, digits: 1) } ?? "-"
      lines.append(
        Self.columns(("  \(Self.viewers(of: camera.pictures))", 45), ("", 14), ("\(made) JPEG/s", 16)))
    }
    for viewer in camera.destinations {
      let old = former?.destinations.first { $0.url == viewer.url }
      let bits = rate(viewer.bytes, old?.bytes).map { Terminal.bitrate($0 * 8) } ?? "-"
      lines.append(
        Self.columns(
          ("  \(viewer.url)", 45), (Self.state(of: viewer), 14), (bits, 13), (Self.sound(of: viewer), 8)))
    }
    return lines
  }

  /// Returns `2 viewers by MJPEG, 1 by snapshot`.
  private static func viewers(of pictures: StreamStatus.Pictures) -> String {
    let taking = pictures.snapshotViewers ?? 0
    let kinds = [(pictures.viewers - taking, "MJPEG"), (taking, "snapshot")].filter { $0.0 > 0 }
    return kinds.enumerated().map { index, kind in
      "\(kind.0)\(index > 0 ? "" : kind.0 == 1 ? " viewer" : " viewers") by \(kind.1)"
    }
    .joined(separator: ", ")
  }

  /// Returns how well the viewer gets the stream.
  private static func state(of viewer: StreamStatus.Destination) -> String {
    if viewer.stopped != nil { return "stopped" }
    if viewer.slow { return "too slow" }
    if let bandwidth = viewer.bandwidth { return "net \(Terminal.bitrate(Double(bandwidth)))" }
    return viewer.reception.map { "lost \(StatusText.percent($0.fractionLost))" } ?? "no report"
  }

  /// Returns `+ sound` for a viewer of picture and sound, `sound` for one that only listens, and nothing for others.
  private static func sound(of viewer: StreamStatus.Destination) -> String {
    let tracks = viewer.tracks ?? []
    guard tracks.contains("sound") else { return "" }
    return tracks.count == 1 ? "sound" : "+ sound"
  }

  /// Returns the fields side by side, each cut or filled to its width, with a space behind it.
  private static func columns(_ fields: (text: String, width: Int)...) -> String {
    var line = ""
    for (index, field) in fields.enumerated() {
      let text = field.text.prefix(field.width - 1)
      line += index == fields.count - 1 ? text : text + String(repeating: " ", count: field.width - text.count)
    }
    return line
  }
}
