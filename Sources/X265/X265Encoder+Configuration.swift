#if X265
  import CX265
  import Glibc
  import Media

  extension X265Encoder {
    /// The least width of a picture, in samples: more than x265's smallest coding tree block. x265 3.5 codes a picture of one
    /// column of coding tree blocks wrongly: it leaves the reference picture beyond its right corners as the memory was
    /// (`FrameFilter::ParallelFilter::processPostCu`), and its motion search finds samples there that no decoder has.
    static let leastWidth = 18

    /// Throws an error for values that x265 cannot obey.
    static func check(_ configuration: EncoderConfiguration) throws(EncoderError) {
      try configuration.check()
      guard configuration.codec == .hevc else {
        throw .configuration("x265 encodes HEVC, not \(configuration.codec.title)")
      }
      guard presets.contains(configuration.x264Preset) else {
        throw .configuration(
          "x265 has no preset '\(configuration.x264Preset)': choose \(presets.joined(separator: ", "))")
      }
      guard configuration.size.width >= leastWidth else {
        throw .configuration(
          "x265 cannot encode \(configuration.size): choose a width of \(leastWidth) or more with --size, or "
            + "--codec h264")
      }
      // x265 makes slices of a picture only on a pool of threads, and holds such a picture back until the next one comes.
      guard configuration.slices == 1, configuration.sliceBytes == nil else {
        throw .configuration("x265 codes a picture as one slice: leave out --slices and --slice-size")
      }
      guard configuration.refreshFrames == nil else {
        throw .configuration("x265 is used with key frames only: leave out --intra-refresh")
      }
      guard configuration.lookahead == 0 else {
        throw .configuration("x265 is used without a lookahead: leave out --lookahead")
      }
    }

    /// Returns x265's parameters for `configuration`; the caller frees them.
    static func parameters(
      for configuration: EncoderConfiguration
    ) throws(EncoderError) -> UnsafeMutablePointer<x265_param> {
      guard let parameters = x265_param_alloc() else { throw .open(library: "x265", code: Int(ENOMEM)) }
      guard x265_param_default_preset(parameters, configuration.preset, "zerolatency") == 0 else {
        x265_param_free(parameters)
        throw .open(library: "x265", code: -1)
      }
      // The samples of a frame have a byte each: a library for 10 or 12 bits would read beyond them.
      let bits = parameters.pointee.internalBitDepth
      guard bits == 8 else {
        x265_param_free(parameters)
        throw .unavailable("this x265 was built for samples of \(bits) bits: install one for 8 bits")
      }
      configuration.fill(&parameters.pointee)
      return parameters
    }
  }

  extension EncoderConfiguration {
    /// The name of x265's preset: the requested one, or that for the effort. An effort out of range gives the fastest
    /// or the slowest preset.
    var preset: String {
      let presets = X265Encoder.presets
      return effort.map { presets[min(max($0.rawValue, 0), presets.count - 1)] } ?? x264Preset
    }

    /// Writes the configuration to x265's parameters, which have the values of a preset.
    fileprivate func fill(_ parameters: inout x265_param) {
      parameters.logLevel = nightjar_x265_log_none
      parameters.internalCsp = nightjar_x265_csp_i420
      parameters.sourceWidth = CInt(size.width)
      parameters.sourceHeight = CInt(size.height)
      parameters.fpsNum = frameRate.numerator
      parameters.fpsDenom = frameRate.denominator
      fillCodingUnits(&parameters)

      // One thread, which x265 creates for the picture: it inherits the affinity and the niceness of the thread that opens
      // the encoder. The threads of x265's pools would lower their own priority and leave the given processors.
      parameters.frameNumThreads = 1
      parameters.bEnableWavefront = 0
      parameters.bDistributeModeAnalysis = 0
      parameters.bDistributeMotionEstimation = 0
      parameters.lookaheadSlices = 0
      parameters.maxSlices = 1

      // No picture is held back, whatever the preset says. Key frames come by the clock and on request only.
      parameters.bframes = 0
      parameters.lookaheadDepth = 0
      parameters.scenecutThreshold = 0
      parameters.bHistBasedSceneCut = 0
      parameters.bOpenGOP = 0
      parameters.radl = 0
      parameters.keyframeMax = -1
      // The encoder puts its own parameter sets before every IDR picture instead, with another level.
      parameters.bRepeatHeaders = 0
      parameters.bEmitInfoSEI = 0
      parameters.bEmitHRDSEI = 0
      parameters.decodedPictureHashSEI = 0
      parameters.bEnableAccessUnitDelimiters = 0
      parameters.bAnnexB = 0
      // The level that x265 determines is replaced.
      parameters.bAllowNonConformance = 1

      // Every picture has a quantizer of its own: see X265Encoder.
      parameters.rc.rateControlMode = nightjar_x265_rc_cqp
      parameters.rc.qp = 26
      parameters.rc.ipFactor = 1
      parameters.rc.bitrate = 0
      parameters.rc.vbvMaxBitrate = 0
      parameters.rc.vbvBufferSize = 0
      parameters.rc.cuTree = 0

      parameters.vui.bEnableVideoSignalTypePresentFlag = 1
      // "Unspecified", table E.2.
      parameters.vui.videoFormat = 5
      parameters.vui.bEnableVideoFullRangeFlag = color.isFullRange ? 1 : 0
      parameters.vui.bEnableColorDescriptionPresentFlag = 1
      parameters.vui.colorPrimaries = CInt(color.primaries)
      parameters.vui.transferCharacteristics = CInt(color.transfer)
      parameters.vui.matrixCoeffs = CInt(color.matrix)
    }

    /// Sets the size of the coding tree block, which must fit into the picture and be narrower than it: see
    /// ``X265Encoder/leastWidth``.
    private func fillCodingUnits(_ parameters: inout x265_param) {
      let side = UInt32(min(size.width - 1, size.height))
      guard parameters.maxCUSize > side else { return }
      parameters.maxCUSize = side >= 32 ? 32 : 16
      parameters.minCUSize = min(parameters.minCUSize, parameters.maxCUSize)
      parameters.maxTUSize = min(parameters.maxTUSize, parameters.maxCUSize)
    }

    /// Returns the level of the stream: that of its coded size, the rate and, with rate control, the bitrate.
    func hevcLevel(codedSize: PictureSize) -> (identifier: UInt8, isHighTier: Bool) {
      if case .constantQuantizer = rateControl {
        return HEVCLevel.lowest(size: codedSize, frameRate: frameRate, peak: 0, buffer: 0)
      }
      return HEVCLevel.lowest(
        size: codedSize, frameRate: frameRate, peak: bitrate, buffer: Int(Double(bitrate) * bufferSeconds))
    }
  }
#endif
