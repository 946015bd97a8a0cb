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

  /// Returns the least bitrate that the encoder is requested to deliver for a slow network.
  ///
  /// - Parameter hasSmall: `true` if the viewer can have the small rendition instead.
  func floor(hasSmall: Bool) -> Int {
    let full = bitrate.load(ordering: .relaxed)
    let floor = bitrateFloor.load(ordering: .relaxed)
    let share = hasSmall ? SmallRendition.bitrateShare : Self.floorShare
    let least = floor == 0 ? Int(Double(full) * share) : floor
    return min(full, max(least, EncoderConfiguration.bitrateLimits.lowerBound))
  }

  /// Requests the bitrate that the slowest viewer's network takes, after a picture. A viewer below the floor gets the small
  /// rendition, which follows the slowest of its own viewers. One below the floor of that loses pictures up to a key frame
  /// instead, and nobody else does. A viewer that gets no picture at all does not count.
  func followNetworks(at now: Instant) {
    let wanted = wantedBandwidth
    let isTelling = now - networkTold >= Self.tellingInterval
    if isTelling { networkTold = now }
    let hasSmall = small?.isPossible(at: now) == true
    let floors = (shared: floor(hasSmall: hasSmall), own: floor(hasSmall: false))
    var least = Double.infinity
    var leastSmall = Double.infinity
    var areChanging = false
    for output in outputs where output.keyFrameRule == .keyFrames {
      let isSmall = output.renditions?.present == .small
      for viewer in output.viewers {
        guard let bandwidth = viewer.bandwidth else { continue }
        // A network is open for a viewer of small pictures once it takes more than the full ones have at least.
        bandwidth.setWanted(isSmall ? max(wantedSmallBandwidth, Double(floors.shared) / Self.payloadShare) : wanted)
        if let small, bandwidth.isLimited || viewer.choice.isUndecided {
          chooseRendition(
            for: viewer, bandwidth, of: output, small, needed: Double(floors.shared) / Self.payloadShare, at: now)
        }
        if isTelling { viewer.tellBandwidth(at: now) }
        guard let target = viewer.target(at: now) else { continue }
        // The key frames at which it changes, and at which it returns, have to fit its network, too.
        if isSmall || output.renditions?.wanted == .small { leastSmall = min(leastSmall, target * Self.payloadShare) }
        if !isSmall || output.renditions?.wanted == .full {
          let floor = hasSmall && canChange(output) ? floors.shared : floors.own
          least = min(least, max(Double(floor), target * Self.payloadShare))
        }
      }
      if output.renditions != nil { areChanging = true }
    }
    let full = bitrate.load(ordering: .relaxed)
    follow(least, of: full, requests, raised: &networkRaised.full, at: now)
    guard let small, areChanging else { return }
    let smallFull = SmallRendition.bitrate(of: full)
    let smallFloor = max(Double(smallFull) * Self.floorShare, Double(EncoderConfiguration.bitrateLimits.lowerBound))
    follow(max(leastSmall, smallFloor), of: smallFull, small.requests, raised: &networkRaised.small, at: now)
    advanceRenditions(small, at: now)
  }

  /// Requests the bitrate that the slowest network takes.
  private func follow(
    _ least: Double, of full: Int, _ requests: EncoderRequests, raised: inout Instant, at now: Instant
  ) {
    let present = requests.networkLimit
    guard least < Double(full) else {
      if present != nil { requests.setNetworkLimit(nil) }
      return
    }
    let limit = Int(least)
    let before = Double(present ?? full)
    guard abs(Double(limit) - before) > before * Self.leastChange else { return }
    if Double(limit) > before {
      guard now - raised >= Self.raiseInterval else { return }
      raised = now
    }
    requests.setNetworkLimit(limit)
  }
}
