#if X264
  import CX264
  public import Media

  extension X264Encoder {
    /// From the next frame on as much work for each picture as `x264Preset` has it, as far as x264 takes that while it
    /// runs: search, refinement, references, trellis, but not what the parameter sets tell. False where one of the
    /// presets is ultrafast, or it is slower than the one that the encoder was opened with.
    ///
    /// - Throws: ``/Media/EncoderError``: it is stopped, or x264 refused; then the old one goes on.
    public func change(x264Preset: String) throws(EncoderError) -> Bool {
      guard encoder != nil else { throw .stopped }
      guard x264Preset != configuration.x264Preset else { return true }
      guard let wanted = Self.presets.firstIndex(of: x264Preset),
        let opened = Self.presets.firstIndex(of: initial.x264Preset), wanted > 0, opened > 0, wanted <= opened
      else { return false }
      var wish = configuration
      wish.x264Preset = x264Preset
      let before = parameters
      try fillEffort(of: wish)
      do throws(EncoderError) {
        try reconfigure()
      } catch {
        parameters = before
        throw error
      }
      configuration = wish
      return true
    }

    /// Takes into ``parameters`` what x264_encoder_reconfig takes over of a preset; the rest stays as it was opened.
    func fillEffort(of wish: EncoderConfiguration) throws(EncoderError) {
      var source = x264_param_t()
      try wish.fill(&source)
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
