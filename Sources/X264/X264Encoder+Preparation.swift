#if X264
  import CX264
  import Glibc
  public import Media

  extension X264Encoder {
    /// Encodes flat grey pictures, until every frame that x264 will ever need has been allocated and touched.
    ///
    /// They must leave no trace in rate control either. x264 takes a key frame's quantizer from the average of those
    /// before, so theirs are forced to be what it would start with; it compares the bits spent with those granted, so
    /// both are next to nothing: flat pictures, and a bitrate of 1 kbit/s for as long as this lasts. With lookahead the
    /// last of them are still held back when this returns; ``X264Encoder`` drops them when they come out, and gives the
    /// bitrate back before it asks for the first real one.
    ///
    /// One whose lookahead was flushed is opened again, and warmed up.
    ///
    /// - Throws: ``/Media/EncoderError``: it is stopped, or x264 failed.
    public func prepare() throws(EncoderError) {
      guard encoder != nil else { throw .stopped }
      let isEmptied = isFlushed
      guard isEmptied || !isPrepared else { return }
      isPrepared = true
      if isEmptied {
        try reopen()
      } else if nextIndex > 0 {
        // One that has encoded is warm, and its next picture need not be a key frame.
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

    /// How much better a quantizer x264 gives key frames.
    private var keyFrameBonus: Int { Int((6 * log2(Double(parameters.rc.f_ip_factor))).rounded()) }

    /// The quantizer that x264 would give the first picture (`x264_ratecontrol_new`, `rate_estimate_qscale`), if its
    /// macroblocks had the complexity of an ordinary scene; nil where quantizers do not follow each other.
    private var firstQuantizer: Int? {
      let isTree = parameters.rc.b_mb_tree != 0
      let first: Double
      switch configuration.rateControl {
      case .constantQuantizer: return nil
      case .variableBitrate:
        // The macroblock tree takes some 13.5 quantizers times the compression away again.
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

    /// SATD of a macroblock, as x264's lookahead measures it on the picture at half its size.
    private static let ordinaryComplexity = 500.0
  }
#endif
