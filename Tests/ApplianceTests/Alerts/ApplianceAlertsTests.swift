import Alerts
import Appliance
import Detection
import Glibc
import Platform
import Serving
import Streaming
import Testing

/// The alerts that the readings of the cameras mean.
@Suite struct ApplianceAlertsTests {
  private static let start = Instant(nanoseconds: 1_000_000_000_000)

  /// The alerts of some seconds, of which each has the same readings.
  private static func alerts(
    _ camera: CameraReading, room: Int? = nil, error: CInt = 0, seconds: Int64 = 4
  ) -> [AlertCondition] {
    var box = ApplianceAlerts()
    var found: [AlertCondition] = []
    for second in 0..<seconds {
      found = box.look([camera], roomOfHistory: room, errorOfHistory: error, at: start + .seconds(second))
    }
    return found
  }

  private static func reading(_ change: (inout CameraReading) -> Void = { _ in }) -> CameraReading {
    var reading = CameraReading(name: "nursery", state: .streaming)
    change(&reading)
    return reading
  }

  @Test func `a camera that is well has no alert`() {
    let well = Self.reading {
      ($0.sound, $0.thermalState, $0.failovers, $0.recoveries) = (.present, "fair", 2, 2)
      $0.viewers = [.init(name: "tv", heard: Self.start, fractionLost: 0.1), .init(name: "file", heard: nil)]
    }
    #expect(Self.alerts(well, room: 1 << 30).isEmpty)
  }

  @Test(arguments: HealthStatus.State.allCases)
  func `every state of a camera is well, or an alert`(state: HealthStatus.State) {
    let expected: AlertKind? =
      switch state {
      case .streaming, .idle, .starting: nil
      case .frozen: .cameraFrozen
      case .waiting, .disconnected, .stalled, .failed, .stuck, .absent: .cameraLost
      }
    #expect(Self.alerts(Self.reading { $0.state = state }).map(\.subject.kind) == (expected.map { [$0] } ?? []))
  }

  @Test func `a loss of two seconds is no alert`() {
    let lost = Self.reading { $0.state = .disconnected }
    #expect(Self.alerts(lost, seconds: 3).isEmpty)
    let alerts = Self.alerts(lost, seconds: 4)
    #expect(alerts.map(\.since) == [Self.start] && alerts.first?.subject.camera == "nursery")
  }

  @Test func `sound, heat, encoder, viewers and disk have alerts of their own`() {
    func kinds(room: Int? = nil, error: CInt = 0, _ change: (inout CameraReading) -> Void) -> [AlertKind] {
      Self.alerts(Self.reading(change), room: room, error: error).map(\.subject.kind)
    }
    #expect(kinds { $0.sound = .absent } == [.microphoneLost])
    #expect(kinds { $0.sound = .stuck } == [.microphoneLost])
    #expect(kinds { $0.sound = .silent } == [.microphoneSilent])
    #expect(kinds { $0.sound = .muted } == [])
    #expect(kinds { ($0.thermalState, $0.temperature) = ("serious", 88.4) } == [.tooHot])
    #expect(kinds { ($0.failovers, $0.recoveries) = (2, 1) } == [.encoderFailedOver])
    #expect(kinds(room: 1 << 20) { _ in } == [.diskFull])
    #expect(kinds(room: 1 << 30, error: ENOSPC) { _ in } == [.diskFull])
    let long = Self.start - .seconds(20)
    #expect(kinds { $0.viewers = [.init(name: "phone", heard: long)] } == [.viewerLost])
    #expect(kinds { $0.viewers = [.init(name: "phone", heard: Self.start, fractionLost: 0.6)] } == [.viewerLost])
  }

  @Test func `what the detectors find is an alert at once, with its time and confidence`() {
    var finding = SoundFinding()
    (finding.level, finding.background, finding.noise, finding.crying) = (-30, -52, 2.5, 4)
    finding.confidence = 0.8
    let reading = Self.reading {
      $0.heard = (finding, Self.start)
      $0.alertsToNoise = true
      ($0.seen.movement, $0.seen.confidence) = (Self.start - .seconds(1), 0.7)
      $0.seen.dark = Self.start - .seconds(60)
    }
    let alerts = Self.alerts(reading, seconds: 1)
    #expect(alerts.map(\.subject.kind) == [.noise, .crying, .movement, .cameraDark])
    #expect(alerts.map(\.confidence) == [1, 0.8, 0.7, 1])
    #expect(alerts[0].since == Self.start - Duration(seconds: 2.5))
    #expect(alerts[0].text == "noise: 22 dB above the background")
    // Findings of a thread that has stopped say nothing, and a placeholder is no room.
    var stale = reading
    stale.heard = (finding, Self.start - .seconds(6))
    stale.state = .disconnected
    #expect(Self.alerts(stale, seconds: 1).isEmpty)
    var unwanted = reading
    unwanted.alertsToNoise = false
    #expect(!Self.alerts(unwanted, seconds: 1).contains { $0.subject.kind == .noise })
  }
}
