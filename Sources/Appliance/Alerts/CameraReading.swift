package import Detection
import Media
package import Platform
import RTP
package import Serving
import Sound
package import Streaming

/// One camera as the alerts see it, once a second.
package struct CameraReading: Sendable {
  /// A viewer that sends reports of the stream.
  package struct Viewer: Hashable, Sendable {
    var name: String
    /// The time of its last report.
    var heard: Instant?
    /// The share of packets that it last reported as lost, 0…1.
    var fractionLost = 0.0

    /// Creates a viewer.
    package init(name: String, heard: Instant? = nil, fractionLost: Double = 0.0) {
      (self.name, self.heard, self.fractionLost) = (name, heard, fractionLost)
    }
  }

  /// The camera's name.
  var name: String
  package var state: HealthStatus.State
  /// The fault of the state, for people.
  var reason: String?
  /// The sound; nil for a stream without sound.
  package var sound: HealthStatus.Sound?
  /// Switches to the fallback encoder, and back.
  package var (failovers, recoveries) = (0, 0)
  /// The present encoder's name.
  var encoder = ""
  /// The host's temperature, as the stream's adaptation follows it; nil if none does.
  package var (thermalState, temperature): (String?, Double?)
  package var viewers: [Viewer] = []
  /// The loudest level of the last second in dBFS; nil without sound.
  var level: Double?
  /// The findings of the detectors of sound, and the time that they are about; nil without detectors.
  package var heard: (finding: SoundFinding, time: Instant)?
  /// `true` if noise itself is an alert, and not only looked for on behalf of crying.
  package var alertsToNoise = false
  /// The findings of the detectors of the picture.
  package var seen = PictureFindings()

  package init(name: String, state: HealthStatus.State) { (self.name, self.state) = (name, state) }

  /// Reads a camera's figures.
  init(_ camera: CameraFigures) {
    let health = camera.health()
    self.init(name: camera.name, state: health.state)
    (reason, sound) = (health.reason, health.sound)
    guard let streaming = camera.camera else { return }
    let counts = streaming.pipeline.counters
    (failovers, recoveries) = (counts.encoder.failovers, counts.encoder.recoveries)
    encoder = counts.encoderName
    let adaptation = streaming.adaptation?.status
    (thermalState, temperature) = (adaptation?.thermalState, adaptation?.temperature)
    let figures = streaming.pipeline.sound?.figures
    level = figures.flatMap { $0.condition.isPresent && !$0.isStuck ? $0.loudest.rms : nil }
    heard = figures.flatMap { figures in figures.finding.map { ($0, figures.findingTime) } }
    alertsToNoise = streaming.alertsToNoise
    seen = streaming.pipeline.detection.findings
    viewers = counts.viewers.map {
      Viewer(name: $0.name, heard: $0.lastHeard, fractionLost: $0.reception.fractionLost)
    }
  }
}
