#if X264
  import CX264
  import Glibc
  import Media

  extension X264Encoder {
    /// Refuses what x264 would accept and do wrong, or refuse without a reason.
    static func check(_ configuration: EncoderConfiguration) throws(EncoderError) {
      try configuration.check()
      guard presets.contains(configuration.x264Preset) else {
        throw .configuration(
          "x264 has no preset '\(configuration.x264Preset)': choose \(presets.joined(separator: ", "))")
      }
    }
  }

  extension EncoderConfiguration {
    /// The same in x264's terms.
    func fill(_ parameters: inout x264_param_t) throws(EncoderError) {
      guard x264_param_default_preset(&parameters, x264Preset, "zerolatency") == 0 else {
        throw .open(library: "x264", code: -1)
      }
      parameters.i_log_level = X264_LOG_NONE
      parameters.i_csp = nightjar_x264_csp_nv12
      parameters.i_width = CInt(size.width)
      parameters.i_height = CInt(size.height)
      fillSlices(&parameters)

      // Nothing is held back, whatever the preset says, but for a lookahead that was asked for. The lookahead's own
      // thread would end with the first flush.
      parameters.i_bframe = 0
      parameters.rc.i_lookahead = CInt(lookahead)
      parameters.i_sync_lookahead = 0
      parameters.rc.b_mb_tree = lookahead > 0 && x264Preset != "ultrafast" ? 1 : 0
      // Key frames come by the clock and on request only; a scene cut must not burst. Of a refresh it is the length.
      parameters.i_keyint_max = refreshFrames.map { CInt($0) } ?? nightjar_x264_keyint_infinite
      if refreshFrames != nil {
        parameters.b_intra_refresh = 1
        // x264 refreshes pictures of one reference.
        parameters.i_frame_reference = 1
      }
      parameters.i_scenecut_threshold = 0
      // Ours are put before every IDR instead, with the nominal rate as their timing.
      parameters.b_repeat_headers = 0
      // The PPS has the same initial quantizer whatever the rate control has come to: an encoder that is opened again
      // after a flush goes on under the parameter sets that it had.
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
        // x264 cannot change the bitrate of its own VBR (ABR with a higher peak) in a running stream; the rate factor
        // it can, so that is what is steered: see RateFactorControl.
        parameters.rc.i_rc_method = X264_RC_CRF
        parameters.rc.f_rf_constant = Float(RateFactorControl.first)
      case .constantQuantizer(let quantizer):
        parameters.rc.i_rc_method = X264_RC_CQP
        parameters.rc.i_qp_constant = CInt(quantizer)
        // The same for every picture: key frames get no better one.
        parameters.rc.f_ip_factor = 1
      }
      fillRate(&parameters, nominalRate: frameRate)

      parameters.vui.b_fullrange = color.isFullRange ? 1 : 0
      parameters.vui.i_colorprim = CInt(color.primaries)
      parameters.vui.i_transfer = CInt(color.transfer)
      parameters.vui.i_colmatrix = CInt(color.matrix)

      // The profile's limits last: it only ever switches tools off.
      guard x264_param_apply_profile(&parameters, profile.rawValue) == 0 else {
        throw .configuration("x264 cannot make the \(profile.rawValue) profile with these settings")
      }
    }

    /// Bitrate, peak and buffer, for an x264 that takes the frame rate for `nominalRate`: what it is told is the
    /// bitrate that comes to the same bits a frame.
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
      // A frame never bursts more than the buffer holds.
      parameters.rc.i_vbv_buffer_size = kilobits(Double(bitrate) * bufferSeconds)
    }

    /// Whether x264 is to hand out each slice once it is coded: where there are several, and their picture is that of the
    /// frame it was just given.
    var deliversSlices: Bool {
      streamsSlices && lookahead == 0 && (slices > 1 || usedThreads > 1 || sliceBytes != nil)
    }

    /// x264 gives a thread no fewer than four rows.
    private var usedThreads: Int { max(1, min(threads, (size.height + 15) / 16 / 4)) }

    /// Threads within a picture, not across pictures, which would hold some back. There, x264 counts its slices for
    /// each thread: their length in macroblocks is what it obeys.
    private func fillSlices(_ parameters: inout x264_param_t) {
      let (columns, rows) = ((size.width + 15) / 16, (size.height + 15) / 16)
      let used = usedThreads
      parameters.i_threads = CInt(used)
      parameters.b_sliced_threads = used > 1 ? 1 : 0
      if let sliceBytes {
        // x264 counts the start code in, four bytes; and never makes more slices than have room in a picture.
        parameters.i_slice_max_size = CInt(sliceBytes + 4)
        parameters.i_slice_count_max = CInt(X264Encoder.nalUnitLimit - 24)
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
