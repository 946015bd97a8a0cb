#if X264
  import CX264
  import Glibc
  public import Media

  /// H.264 by x264: no B-frames, and without lookahead one access unit out for each frame in.
  ///
  /// x264 is told a constant frame rate, because with variable-rate input it holds each picture back until the next
  /// one has come (it wants the picture's duration), and it ignores a change of that rate. So
  /// ``change(bitrate:frameRate:)`` tells it the bitrate that gives each frame its share. Key frames are forced by the
  /// caller's clock for the same reason: x264 counts frames.
  ///
  /// The preset of a running encoder changes between superfast and the one that it was opened with: x264 does not go
  /// back up from ultrafast's `subme 0`, and says nothing; nor does it add what was not there when it was opened.
  public final class X264Encoder: VideoEncoder, @unchecked Sendable {
    // Sendable: used by one thread at a time, as `VideoEncoder` demands.

    /// What it makes.
    public internal(set) var configuration: EncoderConfiguration
    /// What it is, for a person.
    public var name: String {
      let threads = parameters.i_threads
      return "\(Self.libraryName), \(configuration.x264Preset), \(threads) thread\(threads == 1 ? "" : "s")"
    }
    /// The parameter sets of everything that it delivers.
    public let parameterSets: ParameterSets

    private(set) var encoder: OpaquePointer?
    /// As x264 understood them, and then as it was told to change them.
    var parameters: x264_param_t
    var picture = x264_picture_t()
    /// The number of the next picture, which is its time to x264.
    var nextIndex: Int64 = 0
    /// The number of the first picture that is not of the warm-up.
    var firstIndex: Int64 = 0
    /// The number of the picture before which x264 gets its bitrate back after the warm-up; -1 where it has.
    var rateIndex: Int64 = -1
    /// Whether the next picture is an IDR, asked for or not.
    var needsKeyFrame = false
    var isPrepared = false

    private let sequenceBytes: UnsafeRawBufferPointer
    private let pictureBytes: UnsafeRawBufferPointer
    private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
    /// When the pictures were taken that x264 may hold back, by number modulo the length.
    private let times: UnsafeMutableBufferPointer<(timestamp: MediaTime, captured: MediaTime)>
    /// As it was opened: its preset is the best one that it will ever have.
    let initial: EncoderConfiguration
    /// What x264 takes for the frame rate, for ever.
    private let nominalRate: FrameRate
    /// Hands out slices as x264 codes them; nil where it delivers whole pictures.
    private let delivery: SliceDelivery?
    private var rateFactor: RateFactorControl?
    private var isRateFactorNew = false
    /// Whether it was flushed with a lookahead, which x264 does not fill again.
    private(set) var isFlushed = false

    /// The most NAL units in one access unit; a slice each, and parameter sets.
    public static let nalUnitLimit = 1024
    /// The library, for a person: `x264 build 164`.
    public static let libraryName = "x264 build \(nightjar_x264_build)"
    /// x264's presets that make sense in real time, fastest first.
    public static let presets = [
      "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    ]
    /// Twice what any lookahead holds.
    private static let timesCapacity: Int64 = 128

    /// Opens x264 with `configuration`.
    ///
    /// - Throws: ``/Media/EncoderError`` for an impossible value, or where x264 refuses to open.
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
      sequenceBytes = Self.copy(sets.sequence)
      pictureBytes = Self.copy(sets.picture)
      nalUnits = .allocate(capacity: Self.nalUnitLimit)
      times = .allocate(capacity: Int(Self.timesCapacity))
      times.initialize(repeating: (.zero, .zero))
      delivery = configuration.deliversSlices ? SliceDelivery(sets, size: configuration.size) : nil
      x264_picture_init(&picture)
      picture.img.i_csp = nightjar_x264_csp_nv12
      picture.img.i_plane = 2
    }

    deinit {
      stop()
      sequenceBytes.deallocate()
      pictureBytes.deallocate()
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
    /// - Throws: ``/Media/EncoderError``: it is stopped, the frame is not what was agreed, or x264 failed.
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

    /// From the next frame on `bitrate` at `frameRate`. Parameter sets stay, the level among them, so that one who
    /// will want more later starts with it.
    ///
    /// - Throws: ``/Media/EncoderError/configuration(_:)`` for an impossible value, ``/Media/EncoderError/stopped``, or
    ///   ``/Media/EncoderError/call(library:function:code:reason:)`` where x264 refuses; then the old ones go on.
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

    /// Lends what the lookahead holds; nothing where there is none. The frame that follows is a key frame then: x264
    /// does not fill a lookahead that was emptied, so it is opened again.
    ///
    /// - Throws: ``/Media/EncoderError``: it is stopped, or x264 failed.
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

    /// Tells x264 ``parameters``, as far as it takes them while it runs.
    func reconfigure() throws(EncoderError) {
      guard let encoder else { throw .stopped }
      let result = x264_encoder_reconfig(encoder, &parameters)
      guard result == 0 else {
        throw .call(
          library: "x264", function: "x264_encoder_reconfig", code: Int(result), reason: "a parameter was refused")
      }
    }

    /// Gives x264 the bitrate back that the warm-up took away.
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

    /// Opens x264 once more as it was opened first, and tells it what it was told since. The parameter sets are those
    /// of before: what x264 has made of its parameters is not what makes them once more.
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
      // The rate of now; what the library has taken for itself stays.
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
      // What the warm-up left in the lookahead.
      guard output.i_pts >= firstIndex else { return }
      // A refresh begins with what x264 calls a key frame too, and is one of the others.
      let isKeyFrame = output.i_type == X264_TYPE_IDR
      let count = try collect(units, unitCount, withSets: output.b_keyframe != 0)
      self.count(bytes: bytes)
      let time = times[Int(output.i_pts % Self.timesCapacity)]
      let unit = AccessUnit(
        nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<count]), isKeyFrame: isKeyFrame,
        timestamp: time.timestamp, captured: time.captured)
      deliver(unit)
    }

    /// Tells the rate control what a picture has come to.
    private func count(bytes: Int) {
      if rateFactor?.add(bits: bytes * 8) == true { isRateFactorNew = true }
    }

    /// Puts our parameter sets before an IDR's own NAL units, or those of a recovery point; returns how many there are in
    /// all.
    private func collect(
      _ units: UnsafeMutablePointer<x264_nal_t>, _ unitCount: Int, withSets: Bool
    ) throws(EncoderError) -> Int {
      guard unitCount + 2 <= Self.nalUnitLimit else {
        throw .output(
          library: "x264", "\(unitCount) NAL units in a picture, at most \(Self.nalUnitLimit - 2) are taken")
      }
      var count = 0
      func append(_ bytes: UnsafeRawBufferPointer) {
        guard let unit = NALUnit(bytes) else { return }
        nalUnits.initializeElement(at: count, to: unit)
        count += 1
      }
      if withSets {
        append(sequenceBytes)
        append(pictureBytes)
      }
      for index in 0..<unitCount {
        append(units[index].bytes)
      }
      return count
    }

    static func copy(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
      let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
      memory.copyBytes(from: bytes)
      return UnsafeRawBufferPointer(memory)
    }
  }
#endif
