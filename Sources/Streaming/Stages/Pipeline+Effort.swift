import Encoding
package import Media
import Synchronization

extension Pipeline {
  /// Sets the effort of the encoder from one of the next frames on: a greater one with the next key frame that is due, a
  /// lesser one as soon as possible. The encoder of small pictures follows. While software is at work, the encode stage
  /// takes `fallback` by itself after two late frames in a row, and measures encode times from the first call on. To be
  /// called by one thread.
  ///
  /// - Parameters:
  ///   - effort: The effort; nil for that of the encoder's configuration.
  ///   - fallback: The effort to take by itself; nil for none.
  package func govern(_ effort: EncodingEffort?, fallback: EncodingEffort?) {
    rates.withLock {
      $0.effort = effort
      requests.govern($0.encoder, fallback: fallback)
      small?.follow(effort: $0.encoder.effort)
    }
  }

  /// The effort that the encode stage has taken by itself since the last call; nil if it has taken none.
  package func takeFallenEffort() -> EncodingEffort? { requests.takeFallen() }

  /// Exchanges `times`, which is empty, for the encode times of software since the last call. Allocates nothing.
  package func takeEncodeTimes(_ times: inout LatencyHistogram) { statisticsRecorder.takeEncodeTimes(&times) }

  /// `true` if x264 or x265 is the encoder at work, and not hardware.
  package var hasSoftwareEncoder: Bool {
    statisticsRecorder.encode.withLock { EncoderSelector.softwareCodec(ofEncoder: $0.encoderName) != nil }
  }

  /// The number of frames that were dropped because the encoder was late. Allocates nothing.
  package var lateFrames: Int { statisticsRecorder.capture.withLock { $0.drops[DropCause.encoderLate.rawValue] } }
}
