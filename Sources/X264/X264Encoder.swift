#if X264
  import CX264
  import Glibc
  public import Media
  import Platform

  /// An H.264 encoder by x264, without B-frames. Without lookahead, each frame gives one access unit.
  ///
  /// x264 gets a constant frame rate. With variable-rate input it needs each picture's duration, so it holds each
  /// picture back until the next one comes. It also ignores a change of the rate. So ``change(bitrate:frameRate:)``
  /// sets the bitrate that gives each frame its share. The caller's clock forces key frames for the same reason: x264
  /// counts frames.
  ///
  /// The preset of a running encoder can change between superfast and the preset at opening. x264 cannot go back up
  /// from ultrafast's `subme 0`, and reports no error. Nor does it add tools that were missing at opening.
  public final class X264Encoder: VideoEncoder, @unchecked Sendable {
    // Sendable: used by one thread at a time, as `VideoEncoder` demands.

    /// The encoder's configuration.
    public internal(set) var configuration: EncoderConfiguration
    /// The encoder's name for display.
    public var name: String {
      let threads = parameters.i_threads
      return "\(Self.libraryName), \(configuration.preset), \(threads) thread\(threads == 1 ? "" : "s")"
    }
    /// The parameter sets of the stream.
    public let parameterSets: ParameterSets

    private(set) var encoder: OpaquePointer?
    /// x264's parameters, as x264 accepted them at opening and with the later changes.
    var parameters: x264_param_t
    var picture = x264_picture_t()
    /// The number of the next picture, which is its time for x264.
    var nextIndex: Int64 = 0
    /// The number of the first picture after the preparation.
    var firstIndex: Int64 = 0
    /// The number of the picture before which x264 gets its bitrate again after the preparation; -1 if it has it.
    var rateIndex: Int64 = -1
    /// `true` if the next picture must be an IDR picture, even without a request.
    var needsKeyFrame = false
    var isPrepared = false

    private let setUnits: SetUnits
    private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
    /// The times of the pictures that x264 may hold back, indexed by number modulo the length.
    private let times: UnsafeMutableBufferPointer<(timestamp: Instant, captured: Instant)>
    /// The configuration at opening: its preset is the slowest one that the encoder can use.
    let initial: EncoderConfiguration
    /// The constant frame rate that x264 assumes.
    private let nominalRate: FrameRate
    /// The delivery of slices as x264 codes them; nil if the encoder delivers whole pictures.
    private let delivery: SliceDelivery?
    private var rateFactor: RateFactorControl?
    private var isRateFactorNew = false
    /// `true` if the encoder was flushed with a lookahead, which x264 does not fill again.
    package private(set) var isFlushed = false

    /// The name of the library for display, such as `x264 build 164`.
    public static let libraryName = "x264 build \(nightjar_x264_build)"
    /// x264's presets that are useful in real time, the fastest first.
    public static let presets = [
      "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    ]
    /// Twice the number of pictures that any lookahead holds.
    private static let timesCapacity: Int64 = 128

    /// Opens x264 with `configuration`.
    ///
    /// - Throws: ``/Media/EncoderError`` for an impossible value, or if x264 fails to open.
    public init(_ configuration: EncoderConfiguration) throws(EncoderError) {
      try Self.check(configuration)
      var parameters = x264_param_t()
      try configuration.fill(&parameters)
      guard let opened = nightjar_x264_encoder_open(&parameters) else { throw .open(library: "x264", code: -1) }
      let sets: ParameterSets
      do throws(EncoderError) {
        sets =
          try configuration.deliversSlices
          ? Self.parameterSets(like: parameters, frameRate: configuration.frameRate)
          : Self.parameterSets(of: opened, frameRate: configuration.frameRate)
      } catch {
        x264_encoder_close(opened)
        throw error
      }
      encoder = opened
      x264_encoder_parameters(opened, &parameters)
      self.parameters = parameters
      nominalRate = configuration.frameRate
      parameterSets = sets
      self.configuration = configuration
      if configuration.rateControl == .variableBitrate {
        rateFactor = RateFactorControl(
          bitrate: configuration.bitrate, framesPerSecond: configuration.frameRate.framesPerSecond)
      }
      initial = configuration
      setUnits = SetUnits(sets)
      nalUnits = .allocate(capacity: AccessUnit.nalUnitLimit)
      times = .allocate(capacity: Int(Self.timesCapacity))
      times.initialize(repeating: (.zero, .zero))
      delivery = configuration.deliversSlices ? SliceDelivery(setUnits, size: configuration.size) : nil
      x264_picture_init(&picture)
      picture.img.i_csp = nightjar_x264_csp_nv12
      picture.img.i_plane = 2
    }

    deinit {
      stop()
      nalUnits.deallocate()
      times.deallocate()
    }

    /// Ends the encoder and frees its memory.
    public func stop() {
      guard let open = encoder else { return }
      encoder = nil
      x264_encoder_close(open)
    }

    /// Encodes `frame` and lends the access unit; see ``/Media/VideoEncoder``.
    ///
    /// - Throws: ``/Media/EncoderError`` if the encoder is stopped, the frame does not match the configuration, or x264
    ///   fails.
    public func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      if isFlushed { try reopen() }
      guard let encoder else { throw .stopped }
      let planes = frame.planes
      try frame.checkUpright(for: configuration.size)
      if nextIndex == rateIndex { try restoreRate() }
      if isRateFactorNew { try applyRateFactor() }
      times[Int(nextIndex % Self.timesCapacity)] = (frame.timestamp, frame.captured)
      picture.i_pts = nextIndex
      picture.i_type = keyFrame || needsKeyFrame ? X264_TYPE_IDR : X264_TYPE_AUTO
      picture.img.i_stride.0 = CInt(planes.lumaStride)
      picture.img.i_stride.1 = CInt(planes.chromaStride)
      picture.img.plane.0 = planes.luma
      picture.img.plane.1 = planes.chroma

      var units: UnsafeMutablePointer<x264_nal_t>?
      var unitCount: CInt = 0
      var output = x264_picture_t()
      let bytes: CInt
      if let delivery {
        picture.opaque = delivery.opaque
        defer { picture.opaque = nil }
        bytes = delivery.withPicture(timestamp: frame.timestamp, captured: frame.captured, to: sink) {
          x264_encoder_encode(encoder, &units, &unitCount, &picture, &output)
        }
      } else {
        bytes = x264_encoder_encode(encoder, &units, &unitCount, &picture, &output)
      }
      guard bytes >= 0 else { throw .encode(library: "x264", code: Int(bytes)) }
      nextIndex += 1
      needsKeyFrame = false
      if let delivery {
        try delivery.check()
        return count(bytes: Int(bytes))
      }
      guard bytes > 0, let units else {
        guard configuration.lookahead > 0 else { throw .output(library: "x264", "no picture for a frame") }
        return
      }
      try lend(units, Int(unitCount), bytes: Int(bytes), output) { sink.take($0) }
    }

    /// Sets the bitrate and the frame rate from the next frame on. The parameter sets stay, including the level, so
    /// open the encoder with the highest bitrate that it will need.
    ///
    /// - Throws: ``/Media/EncoderError/configuration(_:)`` for an impossible value, ``/Media/EncoderError/stopped``, or
    ///   ``/Media/EncoderError/call(library:function:code:reason:)`` if x264 refuses; the former values then stay.
    public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
      guard encoder != nil else { throw .stopped }
      var wanted = configuration
      wanted.bitrate = bitrate
      wanted.frameRate = frameRate
      try wanted.check()
      let before = parameters
      wanted.fillRate(&parameters, nominalRate: nominalRate)
      do throws(EncoderError) {
        try reconfigure()
      } catch {
        parameters = before
        throw error
      }
      configuration = wanted
      if rateFactor != nil {
        rateFactor?.change(bitrate: bitrate, framesPerSecond: frameRate.framesPerSecond)
        isRateFactorNew = true
      }
    }

    /// Lends the pictures that the lookahead holds; none without lookahead. The next frame is then a key frame, because
    /// x264 does not fill an emptied lookahead and is opened again.
    ///
    /// - Throws: ``/Media/EncoderError`` if the encoder is stopped or x264 fails.
    public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
      guard let encoder else { throw .stopped }
      guard configuration.lookahead > 0 else { return }
      try restoreRate()
      isFlushed = nextIndex > 0
      while x264_encoder_delayed_frames(encoder) > 0 {
        var units: UnsafeMutablePointer<x264_nal_t>?
        var unitCount: CInt = 0
        var output = x264_picture_t()
        let bytes = x264_encoder_encode(encoder, &units, &unitCount, nil, &output)
        guard bytes >= 0 else { throw .encode(library: "x264", code: Int(bytes)) }
        guard bytes > 0, let units else { return }
        try lend(units, Int(unitCount), bytes: Int(bytes), output, to: deliver)
      }
    }

    /// Applies ``parameters`` to x264, as far as x264 can change them while it runs.
    func reconfigure() throws(EncoderError) {
      guard let encoder else { throw .stopped }
      let result = x264_encoder_reconfig(encoder, &parameters)
      guard result == 0 else {
        throw .call(
          library: "x264", function: "x264_encoder_reconfig", code: Int(result), reason: "a parameter was refused")
      }
    }

    /// Restores the bitrate that the preparation lowered.
    private func restoreRate() throws(EncoderError) {
      guard rateIndex >= 0 else { return }
      rateIndex = -1
      configuration.fillRate(&parameters, nominalRate: nominalRate)
      try reconfigure()
    }

    private func applyRateFactor() throws(EncoderError) {
      isRateFactorNew = false
      guard let factor = rateFactor?.factor else { return }
      parameters.rc.f_rf_constant = Float(factor)
      try reconfigure()
    }

    /// Opens x264 again with the parameters of its first opening, and applies the later changes. The former parameter
    /// sets stay, because the parameters that x264 has changed itself would not give the same sets.
    func reopen() throws(EncoderError) {
      guard let open = encoder else { throw .stopped }
      var fresh = x264_param_t()
      try initial.fill(&fresh)
      let rate = parameters.rc
      guard let opened = nightjar_x264_encoder_open(&fresh) else { throw .open(library: "x264", code: -1) }
      x264_encoder_close(open)
      encoder = opened
      isFlushed = false
      x264_encoder_parameters(opened, &parameters)
      // The present rate; values that the library has set itself stay.
      parameters.rc.i_bitrate = rate.i_bitrate
      parameters.rc.i_vbv_max_bitrate = rate.i_vbv_max_bitrate
      parameters.rc.i_vbv_buffer_size = rate.i_vbv_buffer_size
      parameters.rc.f_rf_constant = rate.f_rf_constant
      try fillEffort(of: configuration)
      try reconfigure()
    }

    /// Lends the picture that x264 has finished, with the times of its own frame.
    private func lend(
      _ units: UnsafeMutablePointer<x264_nal_t>, _ unitCount: Int, bytes: Int, _ output: x264_picture_t,
      to deliver: (borrowing AccessUnit) -> Void
    ) throws(EncoderError) {
      // A picture of the preparation that was left in the lookahead.
      guard output.i_pts >= firstIndex else { return }
      // x264 also reports a key frame at the start of a refresh, but that is not an IDR picture.
      let isKeyFrame = output.i_type == X264_TYPE_IDR
      let count = try collect(units, unitCount, withSets: output.b_keyframe != 0)
      self.count(bytes: bytes)
      let time = times[Int(output.i_pts % Self.timesCapacity)]
      let unit = AccessUnit(
        nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<count]), isKeyFrame: isKeyFrame,
        timestamp: time.timestamp, captured: time.captured)
      deliver(unit)
    }

    /// Counts the picture's size in the rate control.
    private func count(bytes: Int) {
      if rateFactor?.add(bits: bytes * 8) == true { isRateFactorNew = true }
    }

    /// Puts the encoder's parameter sets before the NAL units of an IDR picture or a recovery point. Returns the total
    /// number of NAL units.
    private func collect(
      _ units: UnsafeMutablePointer<x264_nal_t>, _ unitCount: Int, withSets: Bool
    ) throws(EncoderError) -> Int {
      guard unitCount + 2 <= AccessUnit.nalUnitLimit else {
        throw .output(
          library: "x264", "\(unitCount) NAL units in a picture, at most \(AccessUnit.nalUnitLimit - 2) are taken")
      }
      var count = 0
      func append(_ unit: NALUnit?) {
        guard let unit else { return }
        nalUnits.initializeElement(at: count, to: unit)
        count += 1
      }
      if withSets { for set in setUnits.units { append(set) } }
      for index in 0..<unitCount { append(NALUnit(units[index].bytes)) }
      return count
    }
  }
#endif
