#if X265
  import CX265
  public import Media
  import Platform
  import Synchronization

  /// An HEVC encoder by x265, Main profile, without B-frames. Each frame gives one access unit of one slice.
  ///
  /// The rate control is not x265's: x265 3.5 reports that it accepts another bitrate in a running stream, and ignores it
  /// (`Encoder::configure` replaces the parameters that its rate control reads). So x265 gets a quantizer with each
  /// picture. A picture that is larger than the buffer is not delivered, but encoded again as a key frame with a greater
  /// quantizer. Constant and variable bitrate are the same: as even as the buffer requires.
  ///
  /// The preset of a running encoder does not change: ``/Media/VideoEncoder/change(effort:)`` returns `false`, and the
  /// caller makes another encoder.
  public final class X265Encoder: VideoEncoder, @unchecked Sendable {
    // Sendable: used by one thread at a time, as `VideoEncoder` demands.

    /// The encoder's configuration.
    public private(set) var configuration: EncoderConfiguration
    /// The encoder's name for display.
    public var name: String { "\(Self.libraryName), \(configuration.preset), 1 thread" }
    /// The parameter sets of the stream.
    public let parameterSets: ParameterSets
    /// The number of pictures that were larger than the buffer and were encoded again.
    public private(set) var counters = EncoderCounters()

    private(set) var encoder: OpaquePointer?
    /// The number of reference pictures.
    let references: Int
    /// The number of the next picture, which is its time for x265.
    private(set) var nextIndex: Int64 = 0
    /// `true` if the next picture must be an IDR picture, even without a request.
    var needsKeyFrame = true
    var isPrepared = false

    private let picture: UnsafeMutablePointer<x265_picture>
    private let setUnits: SetUnits
    private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
    private let chroma: PlanarChroma
    /// The choice of each picture's quantizer; nil if the configuration has a constant one.
    private var control: QuantizerControl?

    /// The name of the library for display, such as `x265 build 199`.
    public static let libraryName = "x265 build \(nightjar_x265_build)"
    /// x265's presets that are useful in real time, the fastest first.
    public static let presets = [
      "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    ]
    /// Held while an encoder is opened or closed, which x265 cannot do for two encoders at a time.
    private static let opening = Mutex(())
    /// The maximum number of attempts at a picture that is larger than the buffer.
    private static let attemptLimit = 3

    /// Opens x265 with `configuration`.
    ///
    /// - Throws: ``/Media/EncoderError`` for an impossible value, or if x265 fails to open.
    public init(_ configuration: EncoderConfiguration) throws(EncoderError) {
      try Self.check(configuration)
      let parameters = try Self.parameters(for: configuration)
      defer { x265_param_free(parameters) }
      guard let picture = x265_picture_alloc() else { throw .open(library: "x265", code: -1) }
      x265_picture_init(parameters, picture)
      picture.pointee.bitDepth = 8
      guard let opened = Self.open(parameters) else {
        x265_picture_free(picture)
        throw .open(library: "x265", code: -1)
      }
      do throws(EncoderError) {
        parameterSets = try Self.parameterSets(of: opened, configuration)
      } catch {
        Self.close(opened)
        x265_picture_free(picture)
        throw error
      }
      encoder = opened
      self.picture = picture
      self.configuration = configuration
      references = Int(parameters.pointee.maxNumReferences)
      if case .constantQuantizer = configuration.rateControl {} else { control = QuantizerControl(configuration) }
      setUnits = SetUnits(parameterSets)
      nalUnits = .allocate(capacity: AccessUnit.nalUnitLimit)
      chroma = PlanarChroma(size: configuration.size)
    }

    deinit {
      stop()
      x265_picture_free(picture)
      nalUnits.deallocate()
    }

    /// Ends the encoder and frees its memory.
    public func stop() {
      guard let open = encoder else { return }
      encoder = nil
      Self.close(open)
    }

    /// Encodes `frame` and lends the access unit; see ``/Media/VideoEncoder``.
    ///
    /// - Throws: ``/Media/EncoderError`` if the encoder is stopped, the frame does not match the configuration, or x265
    ///   fails.
    public func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      guard encoder != nil else { throw .stopped }
      let planes = frame.planes
      try frame.checkUpright(for: configuration.size)
      chroma.split(planes.chroma, stride: planes.chromaStride)
      set(luma: planes.luma, stride: planes.lumaStride, blue: chroma.blue, red: chroma.red)

      var isKeyFrame = keyFrame || needsKeyFrame
      // Until a picture is delivered, the next one cannot refer to those that were not.
      needsKeyFrame = true
      var quantizer = quantizer(isKeyFrame: isKeyFrame)
      var coded = try code(isKeyFrame: isKeyFrame, quantizer: quantizer)
      var attempts = 1
      while attempts < Self.attemptLimit, let greater = control?.quantizer(insteadOf: quantizer, bytes: coded.bytes) {
        attempts += 1
        counters.overflows += 1
        (isKeyFrame, quantizer) = (true, greater)
        coded = try code(isKeyFrame: true, quantizer: quantizer)
      }
      control?.coded(bytes: coded.bytes, quantizer: quantizer, isIDR: isKeyFrame)
      let count = try collect(coded)
      needsKeyFrame = false
      sink.take(
        AccessUnit(
          nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<count]), isKeyFrame: coded.isKeyFrame,
          timestamp: frame.timestamp, captured: frame.captured))
    }

    /// Sets the bitrate and the frame rate from the next frame on. The parameter sets stay, including the level, so
    /// open the encoder with the highest bitrate that it will need.
    ///
    /// - Throws: ``/Media/EncoderError/configuration(_:)`` for an impossible value, or ``/Media/EncoderError/stopped``.
    public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
      guard encoder != nil else { throw .stopped }
      var wanted = configuration
      wanted.bitrate = bitrate
      wanted.frameRate = frameRate
      try wanted.check()
      configuration = wanted
      control?.retarget(wanted)
    }

    /// Accepts an effort that means the present preset, and returns `false` for any other.
    ///
    /// - Throws: ``/Media/EncoderError/stopped``.
    public func change(effort: EncodingEffort?) throws(EncoderError) -> Bool {
      guard encoder != nil else { throw .stopped }
      var requested = configuration
      requested.effort = effort
      guard requested.preset == configuration.preset else { return false }
      configuration = requested
      return true
    }

    /// Does nothing: x265 holds no pictures back.
    ///
    /// - Throws: ``/Media/EncoderError/stopped``.
    public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
      guard encoder != nil else { throw .stopped }
    }

    /// A picture that x265 has coded, whose NAL units stay until the next one.
    struct Coded {
      let units: UnsafeMutablePointer<x265_nal>
      let count: Int
      let bytes: Int
      let isKeyFrame: Bool
    }

    /// Sets the samples of the next picture.
    func set(
      luma: UnsafeMutablePointer<UInt8>, stride: Int, blue: UnsafeMutablePointer<UInt8>,
      red: UnsafeMutablePointer<UInt8>
    ) {
      let width = CInt(configuration.size.width / 2)
      picture.pointee.planes = (
        UnsafeMutableRawPointer(luma), UnsafeMutableRawPointer(blue), UnsafeMutableRawPointer(red)
      )
      picture.pointee.stride = (CInt(stride), width, width)
    }

    /// Codes the picture whose samples were set.
    func code(isKeyFrame: Bool, quantizer: Int) throws(EncoderError) -> Coded {
      guard let encoder else { throw .stopped }
      picture.pointee.pts = nextIndex
      picture.pointee.sliceType = isKeyFrame ? nightjar_x265_type_idr : nightjar_x265_type_auto
      picture.pointee.forceqp = CInt(quantizer) + 1
      nextIndex += 1
      var units: UnsafeMutablePointer<x265_nal>?
      var unitCount: UInt32 = 0
      let result = x265_encoder_encode(encoder, &units, &unitCount, picture, nil)
      guard result >= 0 else { throw .encode(library: "x265", code: Int(result)) }
      guard result > 0, let units else { throw .output(library: "x265", "no picture for a frame") }
      var bytes = 0
      var isKey = false
      for index in 0..<Int(unitCount) {
        bytes += Int(units[index].sizeBytes)
        if let unit = NALUnit(units[index].bytes), VideoCodec.hevc.isKeyFrame(unit) { isKey = true }
      }
      return Coded(units: units, count: Int(unitCount), bytes: bytes, isKeyFrame: isKey)
    }

    private func quantizer(isKeyFrame: Bool) -> Int {
      if case .constantQuantizer(let quantizer) = configuration.rateControl { return quantizer }
      return control?.quantizer(isIDR: isKeyFrame) ?? QuantizerControl.limits.upperBound
    }

    /// Puts the encoder's parameter sets before the NAL units of an IDR picture. Returns the total number of NAL units.
    private func collect(_ coded: Coded) throws(EncoderError) -> Int {
      guard coded.count + setUnits.units.count <= AccessUnit.nalUnitLimit else {
        throw .output(
          library: "x265",
          "\(coded.count) NAL units in a picture, at most \(AccessUnit.nalUnitLimit - setUnits.units.count) are taken")
      }
      var count = 0
      func append(_ unit: NALUnit?) {
        guard let unit else { return }
        nalUnits.initializeElement(at: count, to: unit)
        count += 1
      }
      if coded.isKeyFrame { for set in setUnits.units { append(set) } }
      for index in 0..<coded.count { append(NALUnit(coded.units[index].bytes)) }
      return count
    }

    private static func open(_ parameters: UnsafeMutablePointer<x265_param>) -> OpaquePointer? {
      opening.withLock { _ in nightjar_x265_encoder_open(parameters).map { UInt(bitPattern: $0) } }
        .flatMap { OpaquePointer(bitPattern: $0) }
    }

    private static func close(_ encoder: OpaquePointer) {
      opening.withLock { _ in x265_encoder_close(encoder) }
    }
  }
#endif
