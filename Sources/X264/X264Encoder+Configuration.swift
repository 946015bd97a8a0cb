#if X264
  import CX264
  import Glibc
  import Media

  extension X264Encoder {
    /// Throws an error for values that x264 would apply wrongly, or refuse without a reason.
    static func check(_ configuration: EncoderConfiguration) throws(EncoderError) {
      try configuration.check()
      guard presets.contains(configuration.x264Preset) else {
        throw .configuration(
          "x264 has no preset '\(configuration.x264Preset)': choose \(presets.joined(separator: ", "))")
      }
    }
  }

  extension EncoderConfiguration {
    /// The name of x264's preset: the requested one, or that for the effort. An effort out of range gives the fastest
    /// or the slowest preset.
    var preset: String {
      let presets = X264Encoder.presets
      return effort.map { presets[min(max($0.rawValue, 0), presets.count - 1)] } ?? x264Preset
    }

    /// The `seq_parameter_set_id` and `pic_parameter_set_id`, 1…20: one for each preset and shape, since the parameter
    /// sets of one differ from those of another. A receiver that has lost the new sets decodes nothing by the former
    /// ones, which have other ids (H.264 clause 7.4.1.2.1). A small rendition has 21…26; there, all presets from veryfast on share
    /// two. Hardware has those up to 31, the greatest, and 0 where its driver writes the sets.
    var parameterSetID: Int {
      let presets = X264Encoder.presets
      let rank = presets.firstIndex(of: preset) ?? 0
      let isTall = size.width < size.height
      guard isSmallRendition else { return 1 + rank + (isTall ? presets.count : 0) }
      return 1 + 2 * presets.count + 2 * min(rank, Self.smallRanks - 1) + (isTall ? 1 : 0)
    }

    /// The number of presets of a small rendition that have ids of their own.
    private static let smallRanks = 3

    /// Writes the configuration to x264's parameters.
    func fill(_ parameters: inout x264_param_t) throws(EncoderError) {
      guard x264_param_default_preset(&parameters, preset, "zerolatency") == 0 else {
        throw .open(library: "x264", code: -1)
      }
      parameters.i_log_level = X264_LOG_NONE
      parameters.i_csp = nightjar_x264_csp_nv12
      parameters.i_width = CInt(size.width)
      parameters.i_height = CInt(size.height)
      fillSlices(&parameters)

      // No picture is held back, whatever the preset says, except for a requested lookahead. x264's own lookahead
      // thread stays off, because it would end with the first flush.
      parameters.i_bframe = 0
      parameters.rc.i_lookahead = CInt(lookahead)
      parameters.i_sync_lookahead = 0
      parameters.rc.b_mb_tree = lookahead > 0 && preset != "ultrafast" ? 1 : 0
      // Key frames come by the clock and on request only; a scene cut must not cause a burst. With refresh, this is the
      // length of a refresh.
      parameters.i_keyint_max = refreshFrames.map { CInt($0) } ?? nightjar_x264_keyint_infinite
      if refreshFrames != nil {
        parameters.b_intra_refresh = 1
        // x264's refresh needs a single reference picture.
        parameters.i_frame_reference = 1
      }
      parameters.i_scenecut_threshold = 0
      // The encoder puts its own parameter sets before every IDR picture instead, with the nominal rate as their
      // timing.
      parameters.b_repeat_headers = 0
      parameters.i_sps_id = CInt(parameterSetID)
      // The PPS has the same initial quantizer whatever the state of rate control: an encoder that is opened again
      // after a flush continues with its former parameter sets.
      parameters.b_stitchable = 1
      parameters.b_annexb = 1
      if deliversSlices { parameters.nalu_process = { SliceDelivery.take($0, $1, $2) } }

      // Variable-rate input would hold back a frame: see X264Encoder.
      parameters.b_vfr_input = 0
      parameters.i_fps_num = frameRate.numerator
      parameters.i_fps_den = frameRate.denominator

      switch rateControl {
      case .constantBitrate:
        parameters.rc.i_rc_method = X264_RC_ABR
      case .variableBitrate:
        // x264 cannot change the bitrate of its own VBR (ABR with a higher peak) in a running stream. It can change the
        // rate factor, which RateFactorControl therefore controls.
        parameters.rc.i_rc_method = X264_RC_CRF
        parameters.rc.f_rf_constant = Float(RateFactorControl.first)
      case .constantQuantizer(let quantizer):
        parameters.rc.i_rc_method = X264_RC_CQP
        parameters.rc.i_qp_constant = CInt(quantizer)
        // The same quantizer for every picture: key frames get no better one.
        parameters.rc.f_ip_factor = 1
      }
      fillRate(&parameters, nominalRate: frameRate)

      parameters.vui.b_fullrange = color.isFullRange ? 1 : 0
      parameters.vui.i_colorprim = CInt(color.primaries)
      parameters.vui.i_transfer = CInt(color.transfer)
      parameters.vui.i_colmatrix = CInt(color.matrix)

      // The profile comes last, because it only switches tools off.
      guard x264_param_apply_profile(&parameters, profile.rawValue) == 0 else {
        throw .configuration("x264 cannot make the \(profile.rawValue) profile with these settings")
      }
    }

    /// Writes bitrate, peak and buffer for an x264 that assumes the frame rate `nominalRate`. The bitrate is scaled so
    /// that a frame gets the same number of bits.
    func fillRate(_ parameters: inout x264_param_t, nominalRate: FrameRate) {
      let stretch = nominalRate.framesPerSecond / frameRate.framesPerSecond
      func kilobits(_ bitrate: Double) -> CInt {
        CInt(max(1, min(Double(Self.bitrateLimits.upperBound), bitrate) / 1000))
      }
      switch rateControl {
      case .constantBitrate:
        parameters.rc.i_bitrate = kilobits(Double(bitrate) * stretch)
        parameters.rc.i_vbv_max_bitrate = parameters.rc.i_bitrate
      case .variableBitrate:
        parameters.rc.i_vbv_max_bitrate = kilobits(Double(bitrate) * stretch * Self.peakFactor)
      case .constantQuantizer:
        return
      }
      // No frame exceeds the buffer.
      parameters.rc.i_vbv_buffer_size = kilobits(Double(bitrate) * bufferSeconds)
    }

    /// `true` if x264 delivers each slice once it is coded: the picture has several slices, and belongs to the frame
    /// that was just passed in.
    var deliversSlices: Bool {
      streamsSlices && lookahead == 0 && (slices > 1 || usedThreads > 1 || sliceBytes != nil)
    }

    /// The number of threads in use: x264 gives each thread at least four rows of macroblocks.
    private var usedThreads: Int { max(1, min(threads, (size.height + 15) / 16 / 4)) }

    /// Sets threads within a picture, because threads across pictures would hold some back. In this mode x264 counts
    /// its slices per thread, so the slices' length in macroblocks is set instead.
    private func fillSlices(_ parameters: inout x264_param_t) {
      let (columns, rows) = ((size.width + 15) / 16, (size.height + 15) / 16)
      let used = usedThreads
      parameters.i_threads = CInt(used)
      parameters.b_sliced_threads = used > 1 ? 1 : 0
      if let sliceBytes {
        // x264 includes the four bytes of the start code, and never makes more slices than fit in a picture.
        parameters.i_slice_max_size = CInt(sliceBytes + 4)
        parameters.i_slice_count_max = CInt(AccessUnit.nalUnitLimit - 24)
      } else if used == 1 {
        parameters.i_slice_count = CInt(slices)
      } else if slices > used {
        let threadRows = (rows + used - 1) / used
        let threadSlices = (slices + used - 1) / used
        parameters.i_slice_max_mbs = CInt((threadRows + threadSlices - 1) / threadSlices * columns)
      }
    }
  }
#endif
