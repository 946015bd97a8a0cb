package import Media
import Synchronization

/// Bitrate, size and effort of a stream that runs.
extension Pipeline {
  /// The bitrate in bits a second that the encoder aims at: that of the last ``changeBitrate(_:)``, less the part that
  /// ``restrict(_:)`` took, and no more than the slowest viewer's network takes. Any thread may read it.
  package var bitrate: Int { min(rates.withLock { $0.effective }, requests.networkLimit ?? .max) }

  /// Sets the bitrate to `bitrate` bits a second from one of the next frames on, with neither a key frame nor new
  /// parameter sets.
  ///
  /// - Throws: ``EncoderError/configuration(_:)`` for an impossible value; then nothing changes.
  package func changeBitrate(_ bitrate: Int) throws(EncoderError) {
    try EncoderConfiguration.check(bitrate: bitrate)
    rates.withLock {
      $0.bitrate = bitrate
      apply($0)
    }
  }

  /// Sets the least bitrate in bits a second that the encoder goes down to for a viewer's network; nil is a part of the
  /// bitrate. Any thread may call it.
  package func setBitrateFloor(_ bits: Int?) {
    sendStage.bitrateFloor.store(bits ?? 0, ordering: .relaxed)
    h264?.track.sendStage.bitrateFloor.store(bits ?? 0, ordering: .relaxed)
  }

  /// The restrictions of the stream, by ``restrict(_:)``.
  package var restrictions: StreamRestrictions { rates.withLock { $0.restrictions } }

  /// Restricts the stream from one of the next frames on, or lifts restrictions. Another size, or a preset that a
  /// running x264 does not take, needs another encoder, which is made first. The stream goes on meanwhile, and no frame
  /// is lost. Where the encoder is one of one size alone, rates change, and nothing else. Any thread may call it,
  /// except those of the frame path.
  ///
  /// - Throws: ``FramePoolError`` where there is no memory to scale pictures; then nothing changes.
  package func restrict(_ restrictions: StreamRestrictions) throws {
    precondition(restrictions.bitrateShare > 0 && restrictions.bitrateShare <= 1, "a share of the bitrate")
    let size = restrictions.encoder.size(of: sourceFormat.size)
    try reducer.prepare(from: sourceFormat.size, to: size)
    small?.follow(size: size)
    h264?.follow(size: size)
    thinning.limit(to: restrictions.maximumFrameRate)
    rates.withLock {
      $0.restrictions = restrictions
      requests.setRestrictions($0.encoder)
      small?.follow($0.encoder)
      apply($0)
    }
  }

  /// Updates the stream's color description, where the samples' meaning has changed. The stream may have begun with
  /// another camera, or with none. To be called now and then. The encoder is exchanged as by ``restrict(_:)``.
  package func followColor() {
    guard let color = source.condition?.color else { return }
    rates.withLock {
      let new = color == sourceFormat.color ? nil : color
      guard $0.color != new else { return }
      $0.color = new
      requests.setRestrictions($0.encoder)
      small?.follow(color: color)
      h264?.follow(color: color)
    }
  }

  private func apply(_ rates: Rates) {
    requests.setBitrate(rates.effective)
    sendStage.bitrate.store(rates.effective, ordering: .relaxed)
    small?.follow(bitrate: rates.effective)
    h264?.follow(bitrate: rates.effective)
  }
}
