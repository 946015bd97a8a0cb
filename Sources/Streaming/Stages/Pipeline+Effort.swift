import Encoding
package import Media
import Synchronization

/// A kind of encoder.
package enum EncoderAtWork: Sendable {
  /// x264 or x265.
  case software
  /// Hardware of the host.
  case hardware
  /// The camera, whose own pictures are passed on.
  case camera
}

extension Pipeline {
  /// Sets the effort of software and the quality level of hardware from one of the next frames on: a greater effort or a better
  /// level with the next key frame that is due, a lesser or faster one as soon as possible. The encoder of small pictures follows.
  /// After two late frames in a row, the encode stage takes `fallback` by itself if software is at work, and `faster` if hardware
  /// is. It measures encode times from the first call on. To be called by one thread.
  ///
  /// - Parameters:
  ///   - effort: The effort of software; nil for that of the encoder's configuration.
  ///   - fallback: The effort to take by itself; nil for none.
  ///   - level: VA-API's quality level; nil for that of the encoder's configuration.
  ///   - faster: The quality level to take by itself; nil for none.
  ///   - threads: The number of x264's sliced threads; nil for that of the encoder's configuration.
  package func govern(
    _ effort: EncodingEffort?, fallback: EncodingEffort?, vaapiQuality level: Int? = nil, faster: Int? = nil,
    threads: Int? = nil
  ) {
    rates.withLock {
      ($0.effort, $0.vaapiQuality, $0.threads) = (effort, level, threads)
      requests.govern($0.encoder, fallback: fallback, faster: faster)
      small?.follow($0.encoder)
    }
  }

  /// The effort that the encode stage has taken by itself since the last call; nil if it has taken none.
  package func takeFallenEffort() -> EncodingEffort? { requests.takeFallen() }

  /// The quality level that the encode stage has taken by itself since the last call; nil if it has taken none.
  package func takeFallenQuality() -> Int? { requests.takeFallenQuality() }

  /// Exchanges `times`, which is empty, for the encode times since the last call, without those of frames at which the encoder
  /// changed. Allocates nothing.
  package func takeEncodeTimes(_ times: inout LatencyHistogram) { statisticsRecorder.takeEncodeTimes(&times) }

  /// The kind of encoder that made the last picture.
  package var encoderAtWork: EncoderAtWork {
    statisticsRecorder.encode.withLock { encode in
      if EncoderSelector.softwareCodec(ofEncoder: encode.encoderName) != nil { return .software }
      return encode.encoderName == PassThroughEncoder.cameraName ? .camera : .hardware
    }
  }

  /// `true` if x264 or x265 is the encoder at work, and not hardware.
  package var hasSoftwareEncoder: Bool { encoderAtWork == .software }

  /// The number of frames that were dropped because the encoder was late. Allocates nothing.
  package var lateFrames: Int { statisticsRecorder.capture.withLock { $0.drops[DropCause.encoderLate.rawValue] } }
}
