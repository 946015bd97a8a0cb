import Media
import Platform

/// Any bytes as a byte stream of HEVC with parameter sets and slices, and as a decoder configuration record: nothing traps, what
/// was read is within the limits, and what is written of it is read again.
enum FuzzHEVCSets {
  static func take(_ input: UnsafeRawBufferPointer) {
    take(stream: input)
    take(record: input)
  }

  static func take(stream: UnsafeRawBufferPointer) {
    var sets: [ParameterSetKind: [UInt8]] = [:]
    var sequence: HEVCSequenceParameterSet?
    var picture: HEVCPictureParameterSet?
    AnnexB.forEachNALUnit(in: stream) { unit in
      let bytes = Array(unit.bytes)
      switch VideoCodec.hevc.role(of: unit) {
      case .parameterSet(.video):
        guard let set = try? HEVCVideoParameterSet(nalUnit: bytes) else { return }
        precondition((1...7).contains(set.subLayers))
        sets[.video] = bytes
      case .parameterSet(.sequence):
        guard let set = try? HEVCSequenceParameterSet(nalUnit: bytes) else { return }
        check(set, bytes)
        (sequence, sets[.sequence]) = (set, bytes)
      case .parameterSet(.picture):
        guard let set = try? HEVCPictureParameterSet(nalUnit: bytes) else { return }
        (picture, sets[.picture]) = (set, bytes)
      case .keyFrameSlice, .slice:
        guard let sequence, let picture,
          let slice = try? HEVCSliceHeader(unit, picture: picture, sequence: sequence)
        else { return }
        precondition(slice.references.count <= 48 && (slice.isFirst ? slice.address == 0 : slice.address > 0))
      default: break
      }
    }
    guard let first = sets[.video], let second = sets[.sequence], let third = sets[.picture],
      let all = ParameterSets(video: first, sequence: second, picture: third)
    else { return }
    guard let record = try? HEVCDecoderConfiguration(all) else { fatalError("sets that were read make no record") }
    let again = record.bytes.withUnsafeBytes { try? HEVCDecoderConfiguration(parsing: $0) }
    precondition(again == record && again?.parameterSets == all)
  }

  static func check(_ set: HEVCSequenceParameterSet, _ bytes: [UInt8]) {
    precondition(set.size.width > 0 && set.size.height > 0 && set.codedSize.width <= PictureSize.limit)
    precondition(set.codedSize.height <= PictureSize.limit && set.pictureBuffers <= 16)
    guard let level = try? HEVCProfileTierLevel.replacingLevel(in: bytes, levelIDC: 93, isHighTier: false) else {
      fatalError("an SPS gets no other level")
    }
    // What comes without emulation prevention gets it, and may be longer than a set may be.
    guard level.count <= ParameterSets.lengthLimit else { return }
    guard let read = try? HEVCSequenceParameterSet(nalUnit: level) else {
      fatalError("an SPS with another level is not read")
    }
    precondition(read.profileTierLevel.levelIDC == 93 && read.size == set.size)
    guard let described = try? HEVCSequenceParameterSet.replacingVUI(in: bytes, color: .bt709, frameRate: .thirty),
      described.count <= ParameterSets.lengthLimit
    else { return }
    guard let other = try? HEVCSequenceParameterSet(nalUnit: described) else { fatalError("a new VUI is not read") }
    precondition(other.color == .bt709 && other.frameRate == .thirty && other.size == set.size)
    let half = PictureSize(width: max(2, set.size.width / 4 * 2), height: max(2, set.size.height / 4 * 2))
    guard
      let cropped = try? HEVCSequenceParameterSet.replacingVUI(
        in: bytes, color: .bt709, frameRate: .thirty, size: half), cropped.count <= ParameterSets.lengthLimit
    else { return }
    guard let smaller = try? HEVCSequenceParameterSet(nalUnit: cropped) else { fatalError("a new window is not read") }
    precondition(smaller.size == half && smaller.codedSize == set.codedSize && smaller.color == .bt709)
  }

  static func take(record input: UnsafeRawBufferPointer) {
    guard let record = try? HEVCDecoderConfiguration(parsing: input) else { return }
    let bytes = record.bytes
    guard let again = bytes.withUnsafeBytes({ try? HEVCDecoderConfiguration(parsing: $0) }) else {
      fatalError("our own record is not read")
    }
    precondition(again == record && again.bytes == bytes)
  }
}
