import CX264
import Glibc
public import Media

/// H.264 by x264: zero latency, no B-frames, one access unit out for each frame in.
///
/// x264 is told a constant frame rate, because with variable-rate input it holds each picture back until the next
/// one has come (it wants the picture's duration). A webcam in low light runs at half its nominal rate, though, and
/// would then get half the bitrate; so the rate that frames really come at is measured, and x264's bits a frame
/// follow it. Key frames are forced by the caller's clock for the same reason: x264 counts frames.
public final class X264Encoder: VideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands.

  /// What it makes.
  public private(set) var configuration: EncoderConfiguration
  /// What it is, for a person.
  public let name: String
  /// The parameter sets of everything that it delivers.
  public let parameterSets: ParameterSets

  private var encoder: OpaquePointer?
  private var picture = x264_picture_t()
  private let sequenceBytes: UnsafeRawBufferPointer
  private let pictureBytes: UnsafeRawBufferPointer
  private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
  private var frameCount: Int64 = 0
  /// What x264 takes for the frame rate, for ever: it ignores a change.
  private let nominalRate: FrameRate
  private var isPrepared = false
  private var parameters: x264_param_t

  /// The most NAL units in one access unit; a slice each, and parameter sets.
  public static let nalUnitLimit = 1024
  /// x264's presets that make sense in real time, fastest first.
  public static let presets = [
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
  ]

  /// Opens x264 with `configuration`.
  ///
  /// - Throws: ``EncoderError`` for an impossible value, or where x264 refuses to open.
  public init(_ configuration: EncoderConfiguration) throws(EncoderError) {
    try Self.check(configuration)
    var parameters = x264_param_t()
    try configuration.fill(&parameters)
    guard let opened = nightjar_x264_encoder_open(&parameters) else { throw .open(library: "x264", code: -1) }
    let sets: ParameterSets
    do throws(EncoderError) {
      sets = try Self.parameterSets(of: opened, frameRate: configuration.frameRate)
    } catch {
      x264_encoder_close(opened)
      throw error
    }
    encoder = opened
    self.parameters = parameters
    nominalRate = configuration.frameRate
    parameterSets = sets
    self.configuration = configuration
    let threads = configuration.threads
    name = "x264 build \(nightjar_x264_build), \(configuration.x264Preset), \(threads) thread\(threads == 1 ? "" : "s")"
    sequenceBytes = Self.copy(sets.sequence)
    pictureBytes = Self.copy(sets.picture)
    nalUnits = .allocate(capacity: Self.nalUnitLimit)
    x264_picture_init(&picture)
    picture.img.i_csp = nightjar_x264_csp_nv12
    picture.img.i_plane = 2
  }

  deinit {
    stop()
    sequenceBytes.deallocate()
    pictureBytes.deallocate()
    nalUnits.deallocate()
  }

  /// Ends the encoder and frees its memory.
  public func stop() {
    guard let open = encoder else { return }
    encoder = nil
    x264_encoder_close(open)
  }

  /// Encodes two grey pictures, so that every page is touched and every table filled.
  public func prepare() throws(EncoderError) {
    guard !isPrepared else { return }
    isPrepared = true
  }

  /// Encodes `frame` and lends the access unit; see ``VideoEncoder``.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void
  ) throws(EncoderError) {
    guard let encoder else { throw .stopped }
    let planes = frame.planes
    guard planes.size == configuration.size else {
      throw .frameSize(planes.size, expected: configuration.size)
    }
    picture.i_pts = frameCount
    frameCount += 1
    picture.i_type = keyFrame ? X264_TYPE_IDR : X264_TYPE_AUTO
    picture.img.i_stride.0 = CInt(planes.lumaStride)
    picture.img.i_stride.1 = CInt(planes.chromaStride)
    picture.img.plane.0 = planes.luma
    picture.img.plane.1 = planes.chroma

    var units: UnsafeMutablePointer<x264_nal_t>?
    var unitCount: CInt = 0
    var output = x264_picture_t()
    let bytes = x264_encoder_encode(encoder, &units, &unitCount, &picture, &output)
    guard bytes >= 0 else { throw .encode(library: "x264", code: Int(bytes)) }
    guard bytes > 0, let units else { throw .output(library: "x264", "no picture for a frame") }
    let isKeyFrame = output.b_keyframe != 0
    let count = try collect(units, Int(unitCount), isKeyFrame: isKeyFrame)
    let unit = AccessUnit(
      nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<count]), isKeyFrame: isKeyFrame,
      timestamp: frame.timestamp, captured: frame.captured)
    deliver(unit)
  }

  /// Gives each frame its share of `bitrate`. x264 goes on counting at the nominal rate, so what it is told is the
  /// bitrate that comes to the same bits a frame.
  public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    guard let encoder else { throw .stopped }
    var wanted = configuration
    wanted.bitrate = bitrate
    wanted.frameRate = frameRate
    try wanted.check()
    let limits = EncoderConfiguration.bitrateLimits
    let told = min(Double(limits.upperBound), Double(bitrate) * nominalRate.framesPerSecond / frameRate.framesPerSecond)
    parameters.rc.i_bitrate = CInt(told / 1000)
    parameters.rc.i_vbv_max_bitrate = parameters.rc.i_bitrate
    parameters.rc.i_vbv_buffer_size = max(1, CInt(Double(bitrate) / 1000 * configuration.bufferSeconds))
    let result = x264_encoder_reconfig(encoder, &parameters)
    guard result == 0 else { throw .encode(library: "x264", code: Int(result)) }
    configuration = wanted
  }

  /// Nothing is held back.
  public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard encoder != nil else { throw .stopped }
  }

  /// Puts our parameter sets before an IDR's own NAL units; returns how many there are in all.
  private func collect(
    _ units: UnsafeMutablePointer<x264_nal_t>, _ unitCount: Int, isKeyFrame: Bool
  ) throws(EncoderError) -> Int {
    guard unitCount + 2 <= Self.nalUnitLimit else {
      throw .output(library: "x264", "\(unitCount) NAL units in a picture, at most \(Self.nalUnitLimit - 2) are taken")
    }
    var count = 0
    func append(_ bytes: UnsafeRawBufferPointer) {
      guard let unit = NALUnit(bytes) else { return }
      nalUnits.initializeElement(at: count, to: unit)
      count += 1
    }
    if isKeyFrame {
      append(sequenceBytes)
      append(pictureBytes)
    }
    for index in 0..<unitCount {
      let unit = units[index]
      // `b_long_startcode` tells how long the start code in front is.
      let startCode = unit.b_long_startcode != 0 ? 4 : 3
      append(UnsafeRawBufferPointer(start: unit.p_payload + startCode, count: Int(unit.i_payload) - startCode))
    }
    return count
  }

  /// The encoder's SPS, with the nominal frame rate as its timing, and PPS.
  private static func parameterSets(
    of encoder: OpaquePointer, frameRate: FrameRate
  ) throws(EncoderError) -> ParameterSets {
    var units: UnsafeMutablePointer<x264_nal_t>?
    var unitCount: CInt = 0
    let bytes = x264_encoder_headers(encoder, &units, &unitCount)
    guard bytes > 0, let units else { throw .output(library: "x264", "no parameter sets") }
    var sequence: [UInt8] = []
    var picture: [UInt8] = []
    AnnexB.forEachNALUnit(in: UnsafeRawBufferPointer(start: units[0].p_payload, count: Int(bytes))) { unit in
      switch unit.type {
      case .sequenceParameterSet: sequence = Array(unit.bytes)
      case .pictureParameterSet: picture = Array(unit.bytes)
      default: break
      }
    }
    let timing = SequenceParameterSet.Timing(
      unitsInTick: frameRate.denominator, timeScale: frameRate.numerator &* 2, isFixedFrameRate: false)
    do throws(ParameterSetError) {
      sequence = try SequenceParameterSet.replacingTiming(in: sequence, with: timing) ?? sequence
    } catch {
      throw .output(library: "x264", error.description)
    }
    guard let sets = ParameterSets(sequence: sequence, picture: picture) else {
      throw .output(library: "x264", "parameter sets of \(sequence.count) and \(picture.count) bytes")
    }
    return sets
  }

  private static func copy(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    memory.copyBytes(from: bytes)
    return UnsafeRawBufferPointer(memory)
  }
}
