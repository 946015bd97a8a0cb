#if X264
  import CX264
  import Media

  extension X264Encoder {
    /// Returns the parameter sets of an encoder that delivers slices, from a second encoder of the same parameters that
    /// does not. The first would deliver parameter sets through `nalu_process` too, and look for their frame, which
    /// does not exist.
    static func parameterSets(
      like parameters: x264_param_t, frameRate: FrameRate
    ) throws(EncoderError) -> ParameterSets {
      var parameters = parameters
      parameters.nalu_process = nil
      guard let opened = nightjar_x264_encoder_open(&parameters) else { throw .open(library: "x264", code: -1) }
      defer { x264_encoder_close(opened) }
      return try parameterSets(of: opened, frameRate: frameRate)
    }

    /// Returns the encoder's SPS, with the nominal frame rate as its timing, and its PPS.
    static func parameterSets(
      of encoder: OpaquePointer, frameRate: FrameRate
    ) throws(EncoderError) -> ParameterSets {
      var units: UnsafeMutablePointer<x264_nal_t>?
      var unitCount: CInt = 0
      let bytes = x264_encoder_headers(encoder, &units, &unitCount)
      guard bytes > 0, let units else { throw .output(library: "x264", "no parameter sets") }
      var sequence: [UInt8] = []
      var picture: [UInt8] = []
      AnnexB.forEachNALUnit(in: UnsafeRawBufferPointer(start: units[0].p_payload, count: Int(bytes))) { unit in
        switch unit.type {
        case .sequenceParameterSet: sequence = Array(unit.bytes)
        case .pictureParameterSet: picture = Array(unit.bytes)
        default: break
        }
      }
      do throws(ParameterSetError) {
        let timing = SequenceParameters.timing(of: frameRate)
        sequence = try SequenceParameterSet.replacingTiming(in: sequence, with: timing) ?? sequence
      } catch {
        throw .output(library: "x264", error.description)
      }
      guard let sets = ParameterSets(sequence: sequence, picture: picture) else {
        throw .output(library: "x264", "parameter sets of \(sequence.count) and \(picture.count) bytes")
      }
      return sets
    }
  }
#endif
