#if X264
  import CX264
  import Glibc
  public import Media

  extension X264Encoder {
    /// Encodes flat grey pictures until x264 has allocated and touched every frame that it will need.
    ///
    /// The grey pictures must not affect rate control. x264 takes a key frame's quantizer from the average of those
    /// before, so their quantizers are forced to x264's initial value. It also compares the spent bits with the target,
    /// so both are near zero: flat pictures, and a bitrate of 1 kbit/s during the preparation. With lookahead, the last
    /// of them are still held back when this method returns. ``X264Encoder`` drops them when they come out, and
    /// restores the bitrate before the first real picture is encoded.
    ///
    /// An encoder whose lookahead was flushed is opened again and prepared.
    ///
    /// - Throws: ``/Media/EncoderError`` if the encoder is stopped or x264 fails.
    public func prepare() throws(EncoderError) {
      guard encoder != nil else { throw .stopped }
      let isEmptied = isFlushed
      guard isEmptied || !isPrepared else { return }
      isPrepared = true
      if isEmptied {
        try reopen()
      } else if nextIndex > 0 {
        // An encoder that has encoded pictures is prepared already, and its next picture need not be a key frame.
        return
      }
      guard let encoder else { throw .stopped }

      let luma = configuration.size.pixels
      let grey = UnsafeMutablePointer<UInt8>.allocate(capacity: luma * 3 / 2)
      grey.initialize(repeating: 128, count: luma * 3 / 2)
      defer { grey.deallocate() }
      let width = CInt(configuration.size.width)
      picture.img.i_stride = (width, width, 0, 0)
      picture.img.plane = (grey, grey + luma, nil, nil)

      let quantizer = firstQuantizer
      if case .constantBitrate = configuration.rateControl {
        parameters.rc.i_bitrate = 1
        parameters.rc.i_vbv_max_bitrate = 1
        try reconfigure()
      }
      defer { picture.i_qpplus1 = X264_QP_AUTO }
      for index in 0..<(Int(parameters.i_frame_reference) + 2 + configuration.lookahead) {
        picture.i_pts = nextIndex
        nextIndex += 1
        picture.i_type = index == 0 ? X264_TYPE_IDR : X264_TYPE_AUTO
        if let quantizer { picture.i_qpplus1 = CInt(quantizer + (index == 0 ? 0 : keyFrameBonus)) + 1 }
        var units: UnsafeMutablePointer<x264_nal_t>?
        var unitCount: CInt = 0
        var output = x264_picture_t()
        let bytes = x264_encoder_encode(encoder, &units, &unitCount, &picture, &output)
        guard bytes >= 0 else { throw .encode(library: "x264", code: Int(bytes)) }
      }
      firstIndex = nextIndex
      needsKeyFrame = true
      rateIndex = nextIndex + Int64(x264_encoder_delayed_frames(encoder))
    }

    /// The difference by which x264 lowers the quantizer of key frames.
    private var keyFrameBonus: Int { Int((6 * log2(Double(parameters.rc.f_ip_factor))).rounded()) }

    /// The quantizer that x264 would give the first picture (`x264_ratecontrol_new`, `rate_estimate_qscale`) if its
    /// macroblocks had the complexity of an ordinary scene; nil if quantizers do not depend on former ones.
    private var firstQuantizer: Int? {
      let isTree = parameters.rc.b_mb_tree != 0
      let first: Double
      switch configuration.rateControl {
      case .constantQuantizer: return nil
      case .variableBitrate:
        // x264 adds these quantizers for the macroblock tree, some 13.5 times the compression; the tree subtracts them
        // again.
        let offset = isTree ? (1 - Double(parameters.rc.f_qcompress)) * 13.5 : -Double(keyFrameBonus)
        first = RateFactorControl.first + offset
      case .constantBitrate:
        let compression = isTree ? 1 : Double(parameters.rc.f_qcompress)
        let size = configuration.size
        let macroblocks = Double((size.width + 15) / 16 * ((size.height + 15) / 16))
        let bits = Double(configuration.bitrate) / configuration.frameRate.framesPerSecond
        let scale =
          pow(Self.ordinaryComplexity * macroblocks, 1 - compression) * 0.01 * pow(7e5, compression)
          * macroblocks.squareRoot() / bits
        first = 12 + 6 * log2(scale / 0.85)
      }
      return Int(max(10, min(Double(51 - keyFrameBonus), first.rounded())))
    }

    /// The SATD of a macroblock, as x264's lookahead measures it on the picture at half its size.
    private static let ordinaryComplexity = 500.0
  }
#endif
