#if X264
  import CX264
  public import Media

  extension X264Encoder {
    /// Changes the effort per picture from the next frame on, as far as x264 can change it while it runs: search,
    /// refinement, references and trellis, but not what the parameter sets contain. Returns `false` if one of the
    /// presets is ultrafast, or if the new one is slower than the one that the encoder was opened with.
    ///
    /// - Throws: ``/Media/EncoderError`` if the encoder is stopped or x264 refuses; the former effort then stays.
    public func change(effort: EncodingEffort?) throws(EncoderError) -> Bool {
      guard encoder != nil else { throw .stopped }
      var requested = configuration
      requested.effort = effort
      guard requested.preset != configuration.preset else {
        configuration = requested
        return true
      }
      guard let wanted = Self.presets.firstIndex(of: requested.preset),
        let opened = Self.presets.firstIndex(of: initial.preset), wanted > 0, opened > 0, wanted <= opened
      else { return false }
      let before = parameters
      try fillEffort(of: requested)
      do throws(EncoderError) {
        try reconfigure()
      } catch {
        parameters = before
        throw error
      }
      configuration = requested
      return true
    }

    /// Copies to ``parameters`` the values of a preset that x264_encoder_reconfig accepts; the others stay as they were
    /// at opening.
    func fillEffort(of requested: EncoderConfiguration) throws(EncoderError) {
      var source = x264_param_t()
      try requested.fill(&source)
      parameters.i_frame_reference = source.i_frame_reference
      parameters.analyse.inter = source.analyse.inter
      parameters.analyse.intra = source.analyse.intra
      parameters.analyse.i_me_method = source.analyse.i_me_method
      parameters.analyse.i_me_range = source.analyse.i_me_range
      parameters.analyse.i_subpel_refine = source.analyse.i_subpel_refine
      parameters.analyse.i_trellis = source.analyse.i_trellis
      parameters.analyse.b_mixed_references = source.analyse.b_mixed_references
      parameters.analyse.b_chroma_me = source.analyse.b_chroma_me
    }
  }
#endif
