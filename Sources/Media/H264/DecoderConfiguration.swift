public import Platform

/// The configuration for a decoder of length-prefixed NAL units, the `avcC` box: `AVCDecoderConfigurationRecord`,
/// ISO/IEC 14496-15 clause 5.3.3.1.
public struct DecoderConfiguration: Hashable, Sendable {
  /// `AVCProfileIndication`: `profile_idc`.
  public let profileIDC: UInt8
  /// `profile_compatibility`: the constraint flags.
  public let constraintFlags: UInt8
  /// `AVCLevelIndication`: `level_idc`.
  public let levelIDC: UInt8
  /// The size of a NAL unit's length in bytes: 1, 2 or 4.
  public let lengthSize: Int
  /// The SPS NAL units, header byte first; up to 31.
  public let sequenceParameterSets: [[UInt8]]
  /// The PPS NAL units, header byte first; up to 255.
  public let pictureParameterSets: [[UInt8]]
  /// The chroma format and bit depths, which records of the high profiles include.
  private let format: Format

  private struct Format: Hashable, Sendable {
    let chromaFormatIDC: UInt8
    let lumaBitDepth: UInt8
    let chromaBitDepth: UInt8
  }

  /// The size limit of a record in bytes; a record with one SPS and PPS has about sixty.
  public static let lengthLimit = 64 << 10

  /// Creates the record for a stream of `sets`, with lengths of four bytes.
  ///
  /// - Throws: ``DecoderConfigurationError/parameterSet(_:)`` where the SPS cannot be parsed.
  public init(_ sets: ParameterSets) throws(DecoderConfigurationError) {
    try self.init(sequence: [sets.sequence], picture: [sets.picture], lengthSize: AVCC.lengthSize)
  }

  /// Parses a record.
  ///
  /// - Throws: ``DecoderConfigurationError`` for invalid data.
  public init(parsing record: UnsafeRawBufferPointer) throws(DecoderConfigurationError) {
    guard record.count <= Self.lengthLimit else { throw .tooLong(record.count) }
    var position = 0
    func byte() throws(DecoderConfigurationError) -> UInt8 {
      guard position < record.count else { throw .truncated }
      position += 1
      return record[position - 1]
    }
    func sets(_ count: UInt8, ofType type: UInt8) throws(DecoderConfigurationError) -> [[UInt8]] {
      var sets: [[UInt8]] = []
      for _ in 0..<count {
        let length = Int(try byte()) << 8 | Int(try byte())
        guard length <= record.count - position else { throw .truncated }
        guard length > 0, record[position] & 0x1f == type else {
          throw .parameterSet(type == 7 ? .notSequenceParameterSet : .notPictureParameterSet)
        }
        sets.append(Array(record[position..<position + length]))
        position += length
      }
      return sets
    }
    let version = try byte()
    guard version == 1 else { throw .version(version) }
    // Skips profile, compatibility and level: decoders use those of the SPS.
    for _ in 0..<3 { _ = try byte() }
    let lengthSize = Int(try byte() & 3) + 1
    let sequence = try sets(try byte() & 0x1f, ofType: 7)
    let picture = try sets(try byte(), ofType: 8)
    // The SPS repeats the high profiles' extra fields, and some writers omit them here.
    try self.init(sequence: sequence, picture: picture, lengthSize: lengthSize)
  }

  private init(sequence: [[UInt8]], picture: [[UInt8]], lengthSize: Int) throws(DecoderConfigurationError) {
    guard [1, 2, 4].contains(lengthSize) else { throw .lengthSize(lengthSize) }
    guard let first = sequence.first, !picture.isEmpty else { throw .noParameterSets }
    let set: SequenceParameterSet
    do throws(ParameterSetError) {
      set = try SequenceParameterSet(nalUnit: first)
    } catch {
      throw .parameterSet(error)
    }
    profileIDC = set.profileIDC
    constraintFlags = set.constraintFlags
    levelIDC = set.levelIDC
    self.lengthSize = lengthSize
    sequenceParameterSets = sequence
    pictureParameterSets = picture
    format = Format(
      chromaFormatIDC: set.chromaFormatIDC, lumaBitDepth: set.lumaBitDepth, chromaBitDepth: set.chromaBitDepth)
  }

  /// The first SPS and PPS; the appliance's own streams have no others.
  public var parameterSets: ParameterSets? {
    guard let sequence = sequenceParameterSets.first, let picture = pictureParameterSets.first else { return nil }
    return ParameterSets(sequence: sequence, picture: picture)
  }

  /// The record's bytes; reserved bits are ones.
  public var bytes: [UInt8] {
    var record: [UInt8] = [1, profileIDC, constraintFlags, levelIDC, 0xfc | UInt8(lengthSize - 1)]
    func append(_ sets: [[UInt8]]) {
      for set in sets {
        record.append(UInt8(set.count >> 8))
        record.append(UInt8(set.count & 0xff))
        record.append(contentsOf: set)
      }
    }
    record.append(0xe0 | UInt8(sequenceParameterSets.count))
    append(sequenceParameterSets)
    record.append(UInt8(pictureParameterSets.count))
    append(pictureParameterSets)
    // 144 is in the standard's text for the profile that became 244.
    if [100, 110, 122, 144, 244].contains(profileIDC) {
      record.append(0xfc | format.chromaFormatIDC)
      record.append(0xf8 | (format.lumaBitDepth - 8))
      record.append(0xf8 | (format.chromaBitDepth - 8))
      record.append(0)  // numOfSequenceParameterSetExt: alpha planes
    }
    return record
  }
}

/// An error from parsing or creating a decoder configuration.
public enum DecoderConfigurationError: Failure {
  /// The record ends before its syntax does.
  case truncated
  /// The record's version is not 1.
  case version(UInt8)
  /// A NAL unit's length does not have 1, 2 or 4 bytes.
  case lengthSize(Int)
  /// The record has no SPS or no PPS.
  case noParameterSets
  /// One of the parameter sets is invalid.
  case parameterSet(ParameterSetError)
  /// The record is longer than ``DecoderConfiguration/lengthLimit``.
  case tooLong(Int)

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .truncated: "the decoder configuration is cut off"
    case .version(let version): "a decoder configuration of version \(version): only 1 is known"
    case .lengthSize(let size): "NAL unit lengths of \(size) bytes: 1, 2 or 4 are possible"
    case .noParameterSets: "the decoder configuration has no parameter sets"
    case .parameterSet(let error): "the decoder configuration: \(error)"
    case .tooLong(let count):
      "a decoder configuration of \(count) bytes: at most \(DecoderConfiguration.lengthLimit) are taken"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}
