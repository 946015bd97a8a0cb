import CVA
public import Media

/// The capabilities of one render node's driver, as the driver lists them.
public struct VAAPICapabilities: Hashable, Sendable {
  /// An entry point of the hardware (`VAEntrypoint`).
  public enum EntryPoint: String, CaseIterable, Sendable {
    /// The encoder that also uses the shaders: better pictures.
    case slice = "EncSlice"
    /// The fixed-function encoder: less power.
    case lowPower = "EncSliceLP"
  }

  /// A rate control mode of the driver (`VA_RC_*`).
  public enum RateControlMode: String, CaseIterable, Sendable {
    /// Constant bitrate (`VA_RC_CBR`).
    case constantBitrate = "CBR"
    /// Variable bitrate (`VA_RC_VBR`).
    case variableBitrate = "VBR"
    /// Constant quantizer, without rate control (`VA_RC_CQP`).
    case constantQuantizer = "CQP"
  }

  /// Packed headers that the driver accepts from the application (`VA_ENC_PACKED_HEADER_*`).
  public struct PackedHeaders: OptionSet, Hashable, Sendable {
    /// The bits of `VAConfigAttribEncPackedHeaders`.
    public let rawValue: UInt32
    /// Creates a set from the bits of `VAConfigAttribEncPackedHeaders`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// The SPS and the PPS.
    public static let sequence = PackedHeaders(rawValue: 1)
    /// Slice headers.
    public static let slice = PackedHeaders(rawValue: 4)
  }

  /// A codec and its profile.
  public enum Profile: Hashable, Sendable, CustomStringConvertible {
    /// A profile of H.264.
    case h264(H264Profile)
    /// The Main profile of HEVC: 8-bit 4:2:0.
    case hevcMain

    /// All profiles that are looked for.
    static let all = H264Profile.allCases.map { Profile.h264($0) } + [.hevcMain]

    /// The codec.
    public var codec: VideoCodec {
      switch self {
      case .h264: .h264
      case .hevcMain: .hevc
      }
    }

    /// The profile's name within its codec: `baseline`, `main`, `high`.
    public var name: String {
      switch self {
      case .h264(let profile): profile.rawValue
      case .hevcMain: "main"
      }
    }

    /// The codec and the profile: `H.264 high`, `HEVC main`.
    public var description: String { "\(codec.title) \(name)" }
  }

  /// One profile through one entry point.
  public struct Encoder: Hashable, Sendable {
    /// The codec and the profile of the encoded stream.
    public var profile: Profile
    /// The entry point that encodes.
    public var entryPoint: EntryPoint
    /// The rate control modes that the driver lists; empty if it lists none.
    public var rateControls: [RateControlMode]
    /// The packed headers that the driver accepts.
    public var packedHeaders: PackedHeaders
    /// The maximum number of reference pictures of a P slice.
    public var referenceFrames: Int
    /// The maximum number of slices in a picture of H.264; pictures of HEVC have one.
    public var slices: Int
    /// `true` if the number of macroblock rows in a slice must be a power of two.
    public var needsPowerOfTwoRows: Bool
    /// The number of quality levels, 1 being the best (but for Mesa's drivers); 0 if the driver has no levels.
    public var qualityLevels: Int
    /// The smallest picture; 16x16 if the driver states no minimum.
    public var minimumSize: PictureSize
    /// The largest picture; `PictureSize.limit` in both dimensions if the driver states no maximum.
    public var maximumSize: PictureSize
    /// `true` if the driver can read a DMA-BUF in place (`DRM_PRIME_2`).
    public var importsDMABuffers: Bool
    /// The coding tools and block sizes for HEVC; nil for H.264.
    var hevc: HEVCCapabilities?
  }

  /// The render node of the queried driver.
  public let node: RenderNode
  /// The driver's vendor string.
  public let vendor: String
  /// The driver's encoders: those of H.264 in the order of the profiles, then those of HEVC; empty if it has none.
  public let encoders: [Encoder]
  /// `true` if the driver has video processing (`VAEntrypointVideoProc`), which rotates and scales.
  public let hasVideoProcessing: Bool

  /// `true` if the driver has several quality levels to choose from, in an order.
  package var offersQualityLevels: Bool {
    Self.hasOrderedLevels(vendor: vendor) && encoders.contains { $0.qualityLevels > 1 }
  }

  /// Returns `true` if a greater quality level of the driver is a faster one, as `va.h` says. Mesa's numbers are bits for its
  /// coding tools: of two numbers, either may be the faster one.
  static func hasOrderedLevels(vendor: String) -> Bool { !vendor.hasPrefix("Mesa Gallium") }

  /// The maximum number of profiles, entry points or attributes that is accepted from a driver.
  static let listLimit = 1024

  /// Queries the driver of `node`.
  ///
  /// - Throws: ``/Media/EncoderError`` if the node cannot be opened, has no driver, or if the driver contradicts
  ///   itself.
  public init(of node: RenderNode) throws(EncoderError) {
    try self.init(of: node, through: VADisplayConnection(node))
  }

  init(of node: RenderNode, through display: VADisplayConnection) throws(EncoderError) {
    self.node = node
    vendor = display.vendor
    let profiles = try Self.profiles(display)
    var found: [Encoder] = []
    for profile in Profile.all where profiles.contains(profile.vaProfile) {
      let entryPoints = try Self.entryPoints(display, profile.vaProfile)
      for entryPoint in EntryPoint.allCases where entryPoints.contains(entryPoint.vaEntryPoint) {
        do throws(EncoderError) {
          found.append(try Encoder(profile, entryPoint, display))
        } catch {
          // A driver that contradicts itself about HEVC may encode H.264 all the same.
          guard profile.codec == .hevc else { throw error }
        }
      }
    }
    encoders = found
    guard profiles.contains(VAProfileNone) else {
      hasVideoProcessing = false
      return
    }
    hasVideoProcessing = try Self.entryPoints(display, VAProfileNone).contains(VAEntrypointVideoProc)
  }

  private static func profiles(_ display: VADisplayConnection) throws(EncoderError) -> [VAProfile] {
    let limit = Int(vaMaxNumProfiles(display.handle))
    guard (0...listLimit).contains(limit) else {
      throw .output(library: "VA-API", "\(limit) profiles announced, at most \(listLimit) are believed")
    }
    var list = [VAProfile](repeating: VAProfileNone, count: limit)
    var count: CInt = 0
    try check(vaQueryConfigProfiles(display.handle, &list, &count), "vaQueryConfigProfiles")
    guard (0...limit).contains(Int(count)) else {
      throw .output(library: "VA-API", "\(count) profiles where at most \(limit) were announced")
    }
    return Array(list.prefix(Int(count)))
  }

  private static func entryPoints(
    _ display: VADisplayConnection, _ profile: VAProfile
  ) throws(EncoderError) -> [VAEntrypoint] {
    let limit = Int(vaMaxNumEntrypoints(display.handle))
    guard (0...listLimit).contains(limit) else {
      throw .output(library: "VA-API", "\(limit) entry points announced, at most \(listLimit) are believed")
    }
    var list = [VAEntrypoint](repeating: VAEntrypoint(rawValue: 0), count: limit)
    var count: CInt = 0
    try check(vaQueryConfigEntrypoints(display.handle, profile, &list, &count), "vaQueryConfigEntrypoints")
    guard (0...limit).contains(Int(count)) else {
      throw .output(library: "VA-API", "\(count) entry points where at most \(limit) were announced")
    }
    return Array(list.prefix(Int(count)))
  }
}

extension VAAPICapabilities.Encoder {
  init(
    _ profile: VAAPICapabilities.Profile, _ entryPoint: VAAPICapabilities.EntryPoint, _ display: VADisplayConnection
  ) throws(EncoderError) {
    let features = VAConfigAttribType(rawValue: nightjar_va_hevc_features)
    let blockSizes = VAConfigAttribType(rawValue: nightjar_va_hevc_block_sizes)
    var kinds = [
      VAConfigAttribRTFormat, VAConfigAttribRateControl, VAConfigAttribEncPackedHeaders, VAConfigAttribEncMaxRefFrames,
      VAConfigAttribEncMaxSlices, VAConfigAttribEncSliceStructure, VAConfigAttribEncQualityRange,
      VAConfigAttribMaxPictureWidth, VAConfigAttribMaxPictureHeight,
    ]
    if profile.codec == .hevc { kinds += [features, blockSizes, VAConfigAttribPredictionDirection] }
    var attributes = kinds.map { VAConfigAttrib(type: $0, value: UInt32(VA_ATTRIB_NOT_SUPPORTED)) }
    try check(
      vaGetConfigAttributes(
        display.handle, profile.vaProfile, entryPoint.vaEntryPoint, &attributes, CInt(attributes.count)),
      "vaGetConfigAttributes")
    /// Returns the value of an attribute; nil if the driver does not support it.
    func value(_ kind: VAConfigAttribType) -> UInt32? {
      attributes.first { $0.type == kind && $0.value != UInt32(VA_ATTRIB_NOT_SUPPORTED) }?.value
    }
    self.profile = profile
    self.entryPoint = entryPoint
    guard let formats = value(VAConfigAttribRTFormat), formats & UInt32(VA_RT_FORMAT_YUV420) != 0 else {
      throw .output(
        library: "VA-API", "\(display.vendor) lists \(entryPoint.rawValue) for \(profile) without 4:2:0")
    }
    let modes = value(VAConfigAttribRateControl) ?? 0
    rateControls = VAAPICapabilities.RateControlMode.allCases.filter { modes & $0.vaMode != 0 }
    packedHeaders = VAAPICapabilities.PackedHeaders(rawValue: value(VAConfigAttribEncPackedHeaders) ?? 0)
    referenceFrames = Int((value(VAConfigAttribEncMaxRefFrames) ?? 1) & 0xffff)
    slices = Int(min(value(VAConfigAttribEncMaxSlices) ?? 1, UInt32(Int16.max)))
    let structure = value(VAConfigAttribEncSliceStructure) ?? 0
    let anyRows =
      VA_ENC_SLICE_STRUCTURE_ARBITRARY_MACROBLOCKS | VA_ENC_SLICE_STRUCTURE_EQUAL_ROWS
      | VA_ENC_SLICE_STRUCTURE_ARBITRARY_ROWS | VA_ENC_SLICE_STRUCTURE_EQUAL_MULTI_ROWS
    needsPowerOfTwoRows =
      structure & UInt32(VA_ENC_SLICE_STRUCTURE_POWER_OF_TWO_ROWS) != 0 && structure & UInt32(anyRows) == 0
    qualityLevels = Int(min(value(VAConfigAttribEncQualityRange) ?? 0, 0xffff))
    let limit = UInt32(PictureSize.limit)
    let widest = Int(min(value(VAConfigAttribMaxPictureWidth) ?? limit, limit))
    let highest = Int(min(value(VAConfigAttribMaxPictureHeight) ?? limit, limit))
    minimumSize = PictureSize(width: 16, height: 16)
    maximumSize = PictureSize(width: widest, height: highest)
    importsDMABuffers = false
    if profile.codec == .hevc {
      let directions = value(VAConfigAttribPredictionDirection) ?? 0
      hevc = HEVCCapabilities(
        features: value(features), blockSizes: value(blockSizes),
        needsBothLists: directions & UInt32(VA_PREDICTION_DIRECTION_BI_NOT_EMPTY) != 0,
        isLowPower: entryPoint == .lowPower)
    }
    // The surfaces' limits belong to a config. A driver may list the entry point but refuse the config. The creation of
    // an encoder reports that; a list of devices must not fail because of it.
    guard let config = try? VAConfiguration(display, self, mode: nil, packed: []) else { return }
    let limits = try config.surfaceLimits()
    minimumSize = limits.minimum ?? minimumSize
    if let size = limits.maximum {
      maximumSize = PictureSize(width: min(widest, size.width), height: min(highest, size.height))
    }
    importsDMABuffers = limits.importsDMABuffers
  }
}

extension VAAPICapabilities.Profile {
  /// The value of libva's enumeration.
  var vaProfile: VAProfile {
    switch self {
    case .h264(.baseline): VAProfileH264ConstrainedBaseline
    case .h264(.main): VAProfileH264Main
    case .h264(.high): VAProfileH264High
    case .hevcMain: VAProfileHEVCMain
    }
  }
}

extension EncoderConfiguration {
  /// The codec and the profile of the stream.
  var vaapiProfile: VAAPICapabilities.Profile { codec == .hevc ? .hevcMain : .h264(profile) }
}

extension VAAPICapabilities.EntryPoint {
  /// The value of libva's enumeration.
  var vaEntryPoint: VAEntrypoint {
    switch self {
    case .slice: VAEntrypointEncSlice
    case .lowPower: VAEntrypointEncSliceLP
    }
  }
}

extension VAAPICapabilities.RateControlMode {
  /// The bit of libva's `VA_RC_*`.
  var vaMode: UInt32 {
    switch self {
    case .constantBitrate: UInt32(VA_RC_CBR)
    case .variableBitrate: UInt32(VA_RC_VBR)
    case .constantQuantizer: UInt32(VA_RC_CQP)
    }
  }
}
