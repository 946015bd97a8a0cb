import Media

/// The coding tools and block sizes of a driver for HEVC. The bits are those of `va_enc_hevc.h`.
struct HEVCCapabilities: Hashable, Sendable {
  /// A coding tool. The raw value is the position of its two bits in `VAConfigAttribValEncHEVCFeatures`.
  enum Tool: UInt32, CaseIterable {
    case separatePlanes = 0
    case scalingLists = 2
    case asymmetricPartitions = 4
    case sampleAdaptiveOffset = 6
    case pulseCodeModulation = 8
    case temporalMotionVectors = 10
    case strongIntraSmoothing = 12
    case dependentSlices = 14
    case signHiding = 16
    case constrainedIntra = 18
    case transformSkip = 20
    case quantizerChanges = 22
    case weightedPrediction = 24
    case transquantBypass = 26
    case noDeblocking = 28

    /// `true` if nightjar can write headers that use this tool.
    fileprivate var isWritten: Bool {
      switch self {
      case .asymmetricPartitions, .sampleAdaptiveOffset, .temporalMotionVectors, .strongIntraSmoothing, .signHiding,
        .transformSkip, .quantizerChanges:
        true
      default: false
      }
    }
  }

  /// `VAConfigAttribEncHEVCFeatures`; nil if the driver does not say.
  var features: UInt32?
  /// `VAConfigAttribEncHEVCBlockSizes`; nil if the driver does not say.
  var blockSizes: UInt32?
  /// `true` if the driver codes no P slices: both reference lists of a slice must name a picture
  /// (`VA_PREDICTION_DIRECTION_BI_NOT_EMPTY`).
  var needsBothLists: Bool

  /// `true` for the fixed-function encoder. If the driver names no block sizes, its coding tree blocks have 64 samples.
  var isLowPower = false

  /// `VA_FEATURE_REQUIRED`. Mesa's drivers set the bit of `VA_FEATURE_SUPPORTED` (1) too.
  private static let required: UInt32 = 2

  /// The first tool that the driver requires and nightjar cannot write; nil if there is none.
  var unmetRequirement: Tool? {
    Tool.allCases.first { !$0.isWritten && requires($0) }
  }

  private func bits(of tool: Tool) -> UInt32? { features.map { $0 >> tool.rawValue & 3 } }

  private func has(_ tool: Tool, otherwise: Bool) -> Bool { bits(of: tool).map { $0 != 0 } ?? otherwise }

  private func requires(_ tool: Tool) -> Bool { (bits(of: tool) ?? 0) & Self.required != 0 }

  /// Sets the block sizes and the tools of `sequence`. A driver that names none gets what ffmpeg and GStreamer sent before drivers
  /// could name any: coding tree blocks of 32 samples, and asymmetric partitions as the only tool. Intel's fixed-function encoder
  /// takes only blocks of 64 samples.
  ///
  /// - Parameters:
  ///   - sequence: the parameters to change; their size is read.
  ///   - leastTreeBlockLog2: 5 for a stream of level 5 or above, whose coding tree blocks have at least 32 samples (ITU-T H.265
  ///     clause A.4.2).
  func apply(to sequence: inout HEVCSequenceParameters, leastTreeBlockLog2: Int = 4) {
    /// Returns a field of two bits; nil if the driver does not say.
    func size(_ place: UInt32, plus offset: Int) -> Int? { blockSizes.map { Int($0 >> place & 3) + offset } }
    let least = max(leastTreeBlockLog2, size(2, plus: 3) ?? 4)
    var tree = max(least, size(0, plus: 3) ?? (isLowPower ? 6 : 5))
    // The smallest coding block must not be larger than the coding tree block.
    let coding = min(size(4, plus: 3) ?? 3, tree)
    // A picture smaller than one block is legal, but hardware rarely gets one. Smaller blocks avoid it.
    while tree > max(least, coding), 1 << tree > min(sequence.size.width, sequence.size.height) { tree -= 1 }
    let smallest = min(size(8, plus: 2) ?? 2, coding - 1)
    let largest = max(smallest, min(size(6, plus: 2) ?? 5, min(5, tree)))
    sequence.minimumCodingBlockLog2 = coding
    sequence.codingTreeBlockLog2 = tree
    sequence.minimumTransformBlockLog2 = smallest
    sequence.maximumTransformBlockLog2 = largest
    sequence.interTransformDepth = min(size(10, plus: 0) ?? 3, tree - smallest)
    sequence.intraTransformDepth = min(size(14, plus: 0) ?? 3, tree - smallest)
    sequence.hasAsymmetricPartitions = has(.asymmetricPartitions, otherwise: true)
    sequence.hasSampleAdaptiveOffset = has(.sampleAdaptiveOffset, otherwise: false)
    sequence.hasTemporalMotionVectors = has(.temporalMotionVectors, otherwise: false)
    sequence.hasStrongIntraSmoothing = has(.strongIntraSmoothing, otherwise: false)
  }

  /// Sets the tools of `picture` in a stream of `sequence`.
  ///
  /// The quantizer may change within a picture if the driver controls the rate, or requires such changes. In a coding tree block of 64
  /// samples, each smallest coding block may have its own quantizer. A smaller coding tree block has one quantizer. Intel's hardware
  /// always does this; if the header says otherwise, decoders show a damaged picture.
  func apply(
    to picture: inout HEVCPictureParameters, in sequence: HEVCSequenceParameters, isRateControlled: Bool
  ) {
    picture.hasQuantizerChanges =
      isRateControlled ? has(.quantizerChanges, otherwise: true) : requires(.quantizerChanges)
    let changesWithin = picture.hasQuantizerChanges && sequence.codingTreeBlockLog2 == 6
    picture.quantizerChangeDepth = changesWithin ? 6 - sequence.minimumCodingBlockLog2 : 0
    picture.hidesSigns = has(.signHiding, otherwise: false)
    picture.skipsTransforms = has(.transformSkip, otherwise: false)
  }
}

extension VAAPICapabilities.Encoder {
  /// Returns the size of coded pictures of `size`: whole macroblocks, or whole minimum coding blocks.
  func codedSize(of size: PictureSize) -> PictureSize {
    guard let hevc else { return PictureSize(width: (size.width + 15) & ~15, height: (size.height + 15) & ~15) }
    // The level, the colours and the rate do not change the size.
    var sequence = HEVCSequenceParameters(levelIDC: 0, size: size, color: .unspecified, frameRate: .thirty)
    hevc.apply(to: &sequence)
    return sequence.codedSize
  }
}
