import Control
import Listening
import RTSPServer

/// What the main thread tells others of the box.
extension StreamSession {
  /// What the RTSP server serves now.
  var presentations: [Presentation] {
    slots.compactMap { slot in
      slot.stream.map { Presentation(name: slot.name, pipeline: $0.pipeline, group: $0.command.serving.group) }
    }
  }

  /// Tells the RTSP server and whoever controls the box which cameras there are now.
  func publish() {
    do {
      try rtsp?.setPresentations(presentations)
      servingComplaints["cameras"] = nil
    } catch {
      complainOnce("\(error)", about: "cameras")
    }
    announce()
    let cameras = slots.compactMap { slot in
      slot.stream.map { stream in
        StreamCamera(
          name: slot.name, stream.pipeline, sourceName: stream.opened.sourceName,
          fixesQuality: stream.command.encoding.rateControl == .cqp, adaptation: stream.adaptation,
          isSubstitute: stream.isSubstitute, controls: stream.opened.controls, controlled: slot.controlled,
          missing: slot.missing, figures: control.figures)
      }
    }
    let absent = slots.compactMap { slot in
      slot.absence.map { BoxStatus.Absent(name: slot.name, reason: $0) }
    }
    control.publish(slots.map(\.name), cameras, absent: absent, listeners: listeners, announcer)
  }

  /// Where it listens.
  private var listeners: [BoxStatus.Listener] {
    func listed(_ listeners: [TCPListener], _ scheme: (TCPListener) -> String) -> [BoxStatus.Listener] {
      listeners.map { BoxStatus.Listener(scheme: scheme($0), address: $0.address, port: $0.port) }
    }
    return listed(rtsp?.listeners ?? []) { $0.isEncrypted ? "rtsps" : "rtsp" }
      + listed(api?.listeners ?? []) { _ in "https" } + listed(http?.listeners ?? []) { _ in "http" }
  }
}
