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
    parameters.i_threads = CInt(threads)
    parameters.b_sliced_threads = threads > 1 ? 1 : 0

    // One in, one out: nothing is held back, whatever the preset says.
    parameters.i_bframe = 0
    parameters.rc.i_lookahead = 0
    parameters.i_sync_lookahead = 0
    parameters.rc.b_mb_tree = 0
    // Key frames come by the clock and on request only; a scene cut must not burst.
    parameters.i_keyint_max = nightjar_x264_keyint_infinite
    parameters.i_scenecut_threshold = 0
    // Ours are put before every IDR instead, with the nominal rate as their timing.
    parameters.b_repeat_headers = 0
    parameters.b_annexb = 1

    // Variable-rate input would hold back a frame: see X264Encoder.
    parameters.b_vfr_input = 0
    parameters.i_fps_num = frameRate.numerator
    parameters.i_fps_den = frameRate.denominator

    // A frame never bursts more than the buffer holds.
    let kilobits = CInt(bitrate / 1000)
    parameters.rc.i_rc_method = X264_RC_ABR
    parameters.rc.i_bitrate = kilobits
    parameters.rc.i_vbv_max_bitrate = kilobits
    parameters.rc.i_vbv_buffer_size = max(1, CInt(Double(bitrate) / 1000 * bufferSeconds))

    parameters.vui.b_fullrange = color.isFullRange ? 1 : 0
    parameters.vui.i_colorprim = CInt(color.primaries)
    parameters.vui.i_transfer = CInt(color.transfer)
    parameters.vui.i_colmatrix = CInt(color.matrix)

    // The profile's limits last: it only ever switches tools off.
    guard x264_param_apply_profile(&parameters, profile.rawValue) == 0 else {
      throw .configuration("x264 cannot make the \(profile.rawValue) profile with these settings")
    }
  }
}
