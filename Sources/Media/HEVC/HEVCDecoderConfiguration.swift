/// The configuration for a decoder of length-prefixed NAL units of HEVC, the `hvcC` box: `HEVCDecoderConfigurationRecord`,
/// ISO/IEC 14496-15 clause 8.3.3.1.
public struct HEVCDecoderConfiguration: Hashable, Sendable {
  /// Profile, tier and level.
  public let profileTierLevel: HEVCProfileTierLevel
  /// The size of a NAL unit's length in bytes: 1, 2 or 4.
  public let lengthSize: Int
  /// The VPS NAL units, header first.
  public let videoParameterSets: [[UInt8]]
  /// The SPS NAL units, header first.
  public let sequenceParameterSets: [[UInt8]]
  /// The PPS NAL units, header first.
  public let pictureParameterSets: [[UInt8]]
  private let format: Format

  /// The further fields of the record, which repeat the first SPS and PPS.
  private struct Format: Hashable, Sendable {
    var spatialSegmentation = 0
    var parallelism: UInt8 = 0
    var chromaFormatIDC: UInt8
    var lumaBitDepth: UInt8
    var chromaBitDepth: UInt8
    var subLayers: Int
    var isTemporallyNested: Bool
  }

  /// The size limit of a record in bytes; a record with one set of each kind has about a hundred.
  public static let lengthLimit = DecoderConfiguration.lengthLimit
  /// The limit of parameter sets in a record, of all kinds together.
  public static let setLimit = 256

  /// Creates the record for a stream of `sets`, with lengths of four bytes.
  ///
  /// - Throws: ``DecoderConfigurationError/parameterSet(_:)`` where a set cannot be parsed; of H.264 none can.
  public init(_ sets: ParameterSets) throws(DecoderConfigurationError) {
    guard sets.codec == .hevc else { throw .parameterSet(.notVideoParameterSet) }
    try self.init([sets.video], [sets.sequence], [sets.picture], lengthSize: AVCC.lengthSize)
  }

  /// Parses a record. Arrays of other NAL units, such as SEI, are left out.
  ///
  /// - Throws: ``DecoderConfigurationError`` for invalid data.
  public init(parsing record: UnsafeRawBufferPointer) throws(DecoderConfigurationError) {
    guard record.count <= Self.lengthLimit else { throw .tooLong(record.count) }
    guard let version = record.first else { throw .truncated }
    guard version == 1 else { throw .version(version) }
    // Profile, tier and level, and what describes the samples: decoders use those of the SPS.
    guard record.count >= Self.headerBytes else { throw .truncated }
    let lengthSize = Int(record[21] & 3) + 1
    var position = Self.headerBytes
    func number(_ count: Int) throws(DecoderConfigurationError) -> Int {
      guard count <= record.count - position else { throw .truncated }
      defer { position += count }
      return record[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
    }
    var sets: [ParameterSetKind: [[UInt8]]] = [:]
    var count = 0
    for _ in 0..<record[22] {
      let type = HEVCNALUnitType(rawValue: UInt8(try number(1)))
      for _ in 0..<(try number(2)) {
        let length = try number(2)
        guard length <= record.count - position else { throw .truncated }
        defer { position += length }
        let kind: ParameterSetKind
        switch type {
        case .videoParameterSet: kind = .video
        case .sequenceParameterSet: kind = .sequence
        case .pictureParameterSet: kind = .picture
        default: continue
        }
        count += 1
        guard count <= Self.setLimit else { throw .tooLong(record.count) }
        sets[kind, default: []].append(Array(record[position..<position + length]))
      }
    }
    try self.init(sets[.video] ?? [], sets[.sequence] ?? [], sets[.picture] ?? [], lengthSize: lengthSize)
  }

  /// The bytes before the arrays.
  private static let headerBytes = 23

  private init(
    _ video: [[UInt8]], _ sequence: [[UInt8]], _ picture: [[UInt8]], lengthSize: Int
  ) throws(DecoderConfigurationError) {
    guard [1, 2, 4].contains(lengthSize) else { throw .lengthSize(lengthSize) }
    guard !video.isEmpty, let first = sequence.first, let firstPicture = picture.first else { throw .noParameterSets }
    do throws(ParameterSetError) {
      for set in video { _ = try HEVCVideoParameterSet(nalUnit: set) }
      for set in sequence.dropFirst() { _ = try HEVCSequenceParameterSet(nalUnit: set) }
      for set in picture.dropFirst() { _ = try HEVCPictureParameterSet(nalUnit: set) }
      let set = try HEVCSequenceParameterSet(nalUnit: first)
      let tools = try HEVCPictureParameterSet(nalUnit: firstPicture)
      profileTierLevel = set.profileTierLevel
      format = Format(
        spatialSegmentation: set.spatialSegmentation,
        parallelism: set.spatialSegmentation == 0 ? 0 : Self.parallelism(of: tools),
        chromaFormatIDC: set.chromaFormatIDC, lumaBitDepth: set.lumaBitDepth, chromaBitDepth: set.chromaBitDepth,
        subLayers: set.subLayers, isTemporallyNested: set.isTemporallyNested)
    } catch {
      throw .parameterSet(error)
    }
    self.lengthSize = lengthSize
    (videoParameterSets, sequenceParameterSets, pictureParameterSets) = (video, sequence, picture)
  }

  /// Returns `parallelismType`: 1 for slices, 2 for tiles, 3 for wavefronts, 0 for a mixture.
  private static func parallelism(of set: HEVCPictureParameterSet) -> UInt8 {
    switch (set.hasTiles, set.hasWavefronts) {
    case (true, true): 0
    case (true, false): 2
    case (false, true): 3
    case (false, false): 1
    }
  }

  /// The first VPS, SPS and PPS; nil where one of them is longer than ``ParameterSets/lengthLimit``.
  public var parameterSets: ParameterSets? {
    guard let video = videoParameterSets.first, let sequence = sequenceParameterSets.first,
      let picture = pictureParameterSets.first
    else { return nil }
    return ParameterSets(video: video, sequence: sequence, picture: picture)
  }

  /// The record's bytes; reserved bits are ones. Every array is marked as complete, as the sample entry `hvc1` requires.
  public var bytes: [UInt8] {
    var record = [1] + profileTierLevel.bytes
    record += [0xf0 | UInt8(format.spatialSegmentation >> 8), UInt8(format.spatialSegmentation & 0xff)]
    record += [0xfc | format.parallelism, 0xfc | format.chromaFormatIDC]
    record += [0xf8 | (format.lumaBitDepth - 8) & 7, 0xf8 | (format.chromaBitDepth - 8) & 7]
    record += [0, 0]  // avgFrameRate: unspecified
    // constantFrameRate: unknown.
    record.append(UInt8(format.subLayers) << 3 | (format.isTemporallyNested ? 4 : 0) | UInt8(lengthSize - 1))
    let arrays: [(type: HEVCNALUnitType, sets: [[UInt8]])] = [
      (.videoParameterSet, videoParameterSets), (.sequenceParameterSet, sequenceParameterSets),
      (.pictureParameterSet, pictureParameterSets),
    ]
    record.append(UInt8(arrays.count))
    for array in arrays {
      record += [0x80 | array.type.rawValue, UInt8(array.sets.count >> 8), UInt8(array.sets.count & 0xff)]
      for set in array.sets { record += [UInt8(set.count >> 8), UInt8(set.count & 0xff)] + set }
    }
    return record
  }
}
