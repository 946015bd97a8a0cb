import Encoding
import Media
import Streaming

/// The H.264 of a camera whose codec is HEVC.
extension CameraEncoding {
  /// Returns the H.264 for viewers that cannot decode HEVC: by x264's fastest preset, with the bitrate, the rate control and the
  /// buffer of the stream, in the profile that every decoder supports. Nil for a stream of H.264.
  ///
  /// - Parameter full: the configuration of the stream's own encoder.
  func h264Plan(beside full: EncoderConfiguration) -> H264Plan? {
    guard codec == .hevc else { return nil }
    var settings = EncoderSettings()
    (settings.rateControl, settings.bufferSeconds) = (full.rateControl, full.bufferSeconds)
    let configuration = settings.configuration(
      size: full.size, frameRate: full.frameRate, bitrate: full.bitrate, color: full.color, processors: Self.processors)
    do throws(EncoderError) {
      let sets = try EncoderSelector.softwareParameterSets(for: configuration)
      return H264Plan(configuration, parameterSets: sets) { try EncoderSelector.selectSmall(.x264, $0) }
    } catch {
      return H264Plan(configuration, obstacle: error.description)
    }
  }
}
