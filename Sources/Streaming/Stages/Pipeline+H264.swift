package import Media
import Platform
import Synchronization

/// The H.264 beside a stream of another codec. It is one more track, whose encoder exists while the track has a viewer.
extension Pipeline {
  /// `true` if viewers that cannot decode the stream's codec may request H.264, which may be refused.
  package var hasH264: Bool { h264 != nil }

  /// The number of the track of H.264; nil where there is none. It comes after those of ``tracks``.
  package var h264Track: Int? { h264?.track.number }

  /// The parameter sets of the H.264, as far as they are known; nil where there is no encoder for it.
  package var h264ParameterSets: ParameterSets? { h264?.parameterSets }

  /// The reason why a viewer of H.264 that came now would get nothing; nil where it would get pictures. Any thread may call it.
  package var h264Refusal: H264Refusal? { h264?.refusal }

  /// Sets the processors that the encoder of H.264 may use. Without a call it may use any number. Any thread may call it.
  ///
  /// - Parameters:
  ///   - room: the processors that are left beside all encoders at work.
  ///   - reserve: returns the processors that the stream's own encoder would give up. Any thread calls it.
  package func setProcessorRoom(
    _ room: any ProcessorRoom, reserve: @escaping @Sendable () -> Double = { 0 }
  ) {
    h264?.setRoom(room, reserve: reserve)
  }

  /// Returns the track of a number, of H.264 too.
  package func track(_ number: Int) -> Track {
    if let h264, number == h264.track.number { return h264.track }
    return tracks[number]
  }

  /// The numbers of the tracks that a viewer by RTSP gets, in the order of its own numbers: the pictures, and then the others.
  ///
  /// - Parameter isH264: `true` for H.264 instead of the stream's own pictures.
  package func guestTracks(isH264: Bool) -> [Int] {
    let numbers = tracks.map(\.number)
    guard isH264, let h264 else { return numbers }
    return [h264.track.number] + numbers.dropFirst()
  }
}

extension H264Rendition {
  /// Creates a rendition that rests, with a track whose thread does not run yet.
  ///
  /// - Parameters:
  ///   - number: the number of the track.
  ///   - pacing: the part of a frame interval over which a large frame is spread.
  /// - Throws: ``FramePoolError``, ``SystemFailure``.
  convenience init(
    _ plan: H264Plan, number: Int, sourceSize: PictureSize, keyFrameInterval: Duration, pacing: Double,
    canonicalName: String, started: Instant, _ sending: PacketSending
  ) throws {
    let configuration = plan.configuration
    let format = TrackFormat(
      payload: .h264, bitrate: configuration.bitrate, interval: configuration.frameRate.interval,
      groupInterval: keyFrameInterval, unitBytes: sourceSize.pixels * 3 + 65_536, parameterSets: plan.parameterSets,
      profile: configuration.profile)
    let requests = EncoderRequests()
    let track = try Track(
      number, format, pacing: pacing, canonicalName: canonicalName, requests: requests,
      statistics: StatisticsRecorder(encoderName: "", started: started), sending: sending)
    self.init(plan, track: track, requests: requests, sourceSize: sourceSize, keyFrameInterval: keyFrameInterval)
  }
}

extension StreamStatistics {
  /// Adds the figures of the H.264 beside the stream.
  mutating func add(_ rendition: H264Rendition) {
    h264Rendition = rendition.statistics
    let (requests, streams, sent) = rendition.track.statistics.send.withLock {
      ($0.keyFrameRequests, $0.streams, $0.frames)
    }
    h264Rendition?.sent = sent
    keyFrameRequests.asked += requests.asked
    keyFrameRequests.granted += requests.granted
    self.streams += streams
  }
}
