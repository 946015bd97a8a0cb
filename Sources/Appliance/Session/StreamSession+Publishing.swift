import Serving

/// The state that the main thread publishes for the servers.
extension StreamSession {
  /// The presentations that the RTSP server serves now.
  var presentations: [Presentation] {
    slots.compactMap { slot in
      slot.stream.map { Presentation(name: slot.name, pipeline: $0.pipeline, group: $0.command.group) }
    }
  }

  /// Tells the RTSP server and the control API which cameras there are now.
  func publish() {
    do {
      try rtsp?.setPresentations(presentations)
      complaints["cameras"] = nil
    } catch {
      complainOnce("\(error)", about: "cameras")
    }
    announce()
    peers?.serve(slots.compactMap { $0.stream?.pipeline })
    let cameras = slots.compactMap { slot in
      slot.stream.map {
        StreamCamera($0, of: slot, figures: control.figures, peers: peers, changes: control.changes)
      }
    }
    let absent = table.entries.compactMap { entry in
      entry.absence.map { ApplianceStatus.Absent(name: entry.name, reason: $0) }
    }
    control.publish(
      slots.map(\.name), cameras, absent: absent, listeners: listeners, announcer,
      page: api.map {
        ApplianceControl.Page(
          phones: servingAPI?.phones, listeners: $0.listeners, authority: servingAPI?.identity?.authority,
          push: configuration.events.push.isOn ? push.subscriptions : nil)
      })
  }

  /// The addresses at which the appliance listens.
  private var listeners: [ApplianceStatus.Listener] {
    func listed(_ listeners: [TCPListener], _ scheme: (TCPListener) -> String) -> [ApplianceStatus.Listener] {
      listeners.map { ApplianceStatus.Listener(scheme: scheme($0), address: $0.address, port: $0.port) }
    }
    return listed(rtsp?.listeners ?? []) { $0.isEncrypted ? "rtsps" : "rtsp" }
      + listed(api?.listeners ?? []) { _ in "https" } + listed(http?.listeners ?? []) { _ in "http" }
  }
}
