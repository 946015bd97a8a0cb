import Media
import Platform
import RTP
import Synchronization

/// The bitrate that follows the viewers' networks.
extension SendStage {
  /// The part of the bits on the network that is left to the encoder: packets of 1200 bytes have 40 bytes of headers.
  static let payloadShare = 0.96
  /// The default floor, as a part of the bitrate.
  static let floorShare = 0.05
  /// The relative change below which the encoder is not told.
  static let leastChange = 0.03
  /// The time between two increases.
  static let raiseInterval = Duration.milliseconds(200)

  /// The time between two updates of the figures.
  static let tellingInterval = Duration.milliseconds(250)

  /// The bits a second on the network that the stream has at its full bitrate.
  var wantedBandwidth: Double { Double(bitrate.load(ordering: .relaxed)) / Self.payloadShare }

  /// The least bitrate that the encoder is requested to deliver for a slow network.
  var floor: Int {
    let full = bitrate.load(ordering: .relaxed)
    let floor = bitrateFloor.load(ordering: .relaxed)
    let least = floor == 0 ? Int(Double(full) * Self.floorShare) : floor
    return min(full, max(least, EncoderConfiguration.bitrateLimits.lowerBound))
  }

  /// Requests the bitrate that the slowest viewer's network takes, after a picture. A viewer below the floor loses
  /// pictures up to a key frame instead, and nobody else does. A viewer that gets no picture at all does not count.
  func followNetworks(at now: Instant) {
    let wanted = wantedBandwidth
    let isTelling = now - networkTold >= Self.tellingInterval
    if isTelling { networkTold = now }
    var least = Double.infinity
    for output in outputs where output.keyFrameRule == .keyFrames {
      for viewer in output.viewers where viewer.bandwidth != nil {
        viewer.bandwidth?.setWanted(wanted)
        if isTelling { viewer.tellBandwidth(at: now) }
        if let target = viewer.target(at: now) { least = min(least, target) }
      }
    }
    let present = requests.networkLimit
    let full = bitrate.load(ordering: .relaxed)
    guard least * Self.payloadShare < Double(full) else {
      if present != nil { requests.setNetworkLimit(nil) }
      return
    }
    let limit = max(floor, Int(least * Self.payloadShare))
    let before = Double(present ?? full)
    guard abs(Double(limit) - before) > before * Self.leastChange else { return }
    if Double(limit) > before {
      guard now - networkRaised >= Self.raiseInterval else { return }
      networkRaised = now
    }
    requests.setNetworkLimit(limit)
  }
}
