#if X264
  import CX264
  import Glibc
  public import Media

  extension X264Encoder {
    /// Encodes flat grey pictures, until every frame that x264 will ever need has been allocated and touched.
    ///
    /// They must leave no trace in rate control either. x264 averages the quantizers, so theirs are forced to be those
    /// that it starts with; it compares the bits spent with those granted, so both are next to nothing: flat pictures,
    /// and a bitrate of 1 kbit/s for as long as this lasts. With lookahead the last of them are still held back when
    /// this returns; ``X264Encoder`` drops them when they come out.
    public func prepare() throws(EncoderError) {
      guard let encoder else { throw .stopped }
      guard !isPrepared else { return }
      isPrepared = true
      // One that has encoded is warm, and its next picture need not be a key frame.
      guard nextIndex == 0 else { return }

      let luma = configuration.size.pixels
      let grey = UnsafeMutablePointer<UInt8>.allocate(capacity: luma * 3 / 2)
      grey.initialize(repeating: 128, count: luma * 3 / 2)
      defer { grey.deallocate() }
      let width = CInt(configuration.size.width)
      picture.img.i_stride = (width, width, 0, 0)
      picture.img.plane = (grey, grey + luma, nil, nil)

      let rates = parameters
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
        if configuration.rateControl.adapts {
          // x264 gives key frames a quantizer that is better by `6 * log2(f_ip_factor)`: 3.
          picture.i_qpplus1 = CInt(RateFactorControl.first) + (index == 0 ? -3 : 0) + 1
        }
        var units: UnsafeMutablePointer<x264_nal_t>?
        var unitCount: CInt = 0
        var output = x264_picture_t()
        let bytes = x264_encoder_encode(encoder, &units, &unitCount, &picture, &output)
        guard bytes >= 0 else { throw .encode(library: "x264", code: Int(bytes)) }
      }
      parameters = rates
      if case .constantBitrate = configuration.rateControl { try reconfigure() }
      firstIndex = nextIndex
      needsKeyFrame = true
    }
  }

  extension RateControl {
    /// Whether x264 chooses the quantizers.
    fileprivate var adapts: Bool {
      if case .constantQuantizer = self { false } else { true }
    }
  }
#endif
