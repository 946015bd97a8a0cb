package import Media

/// The fields of a slice header by which a decoder tells pictures apart (ITU-T H.264 clauses 7.3.3 and 7.4.1.2.4).
package struct SliceSyntax: Hashable, Sendable {
  /// `first_mb_in_slice`: of pairs of macroblocks where the sequence is adaptive and the picture is a frame.
  package private(set) var firstMacroblock: Int
  /// `pic_parameter_set_id`.
  package let pictureParameterSet: Int
  /// `frame_num`.
  package let frameNumber: Int
  /// `true` for a slice of a reference picture: `nal_ref_idc` is not zero.
  package let isReference: Bool
  /// `true` for a slice of an IDR picture.
  package let isIDR: Bool
  /// `true` for a B slice, which may refer to two pictures.
  package private(set) var isBidirectional: Bool
  /// `field_pic_flag`.
  package private(set) var isField = false
  /// `bottom_field_flag`.
  package private(set) var isBottom = false
  /// `true` for a slice that repeats another one, `redundant_pic_cnt`: no decoder needs it.
  package private(set) var isRedundant = false
  private var idrPictureID = 0
  private var (orderCount, orderCountBits) = (0, 0)
  private var bottomDelta = 0
  private var (firstDelta, secondDelta) = (0, 0)

  /// Reads the fields of a slice with the sets that the stream has; nil for a slice whose sets are missing, and for
  /// fields that are missing.
  package init?(_ unit: NALUnit, _ sets: SyntaxTable) {
    var reader = HeaderBits(unit)
    guard let first = reader.unsigned(), let type = reader.unsigned(), type <= 9, let set = reader.unsigned(),
      let picture = sets.picture(set), let sequence = sets.sequence(picture.sequence)
    else { return nil }
    if sequence.hasSeparatePlanes { guard reader.bits(2) != nil else { return nil } }
    guard let frameNumber = reader.bits(sequence.frameNumberBits) else { return nil }
    (firstMacroblock, pictureParameterSet, self.frameNumber) = (first, set, frameNumber)
    (isReference, isIDR) = (unit.referenceIDC > 0, unit.type == .idrSlice)
    isBidirectional = type % 5 == 1
    if !sequence.isFrameOnly {
      guard let isField = reader.flag() else { return nil }
      self.isField = isField
      if isField {
        guard let isBottom = reader.flag() else { return nil }
        self.isBottom = isBottom
      }
    }
    if isIDR {
      guard let identifier = reader.unsigned() else { return nil }
      idrPictureID = identifier
    }
    if sequence.orderCountType == 0 {
      guard let count = reader.bits(sequence.orderCountBits) else { return nil }
      (orderCount, orderCountBits) = (count, sequence.orderCountBits)
      if picture.hasBottomOrder, !isField {
        guard let delta = reader.signed() else { return nil }
        bottomDelta = delta
      }
    } else if sequence.orderCountType == 1, !sequence.isDeltaAlwaysZero {
      guard let first = reader.signed() else { return nil }
      firstDelta = first
      if picture.hasBottomOrder, !isField {
        guard let second = reader.signed() else { return nil }
        secondDelta = second
      }
    }
    // A header that is cut off here still tells its picture.
    if picture.hasRedundantCount { isRedundant = (reader.unsigned() ?? 0) > 0 }
  }

  /// Reads the number of the PPS that a slice names; nil where it is missing or impossible.
  package static func pictureParameterSet(of unit: NALUnit) -> Int? {
    var reader = HeaderBits(unit)
    guard reader.unsigned() != nil, reader.unsigned() != nil, let identifier = reader.unsigned(), identifier <= 255
    else { return nil }
    return identifier
  }

  /// Returns `true` if this slice and `former` belong to different pictures, clause 7.4.1.2.4.
  package func beginsPicture(after former: SliceSyntax) -> Bool {
    var other = former
    (other.firstMacroblock, other.isRedundant) = (firstMacroblock, isRedundant)
    other.isBidirectional = isBidirectional
    return self != other
  }

  /// Returns `true` if this slice is of the second field of the frame whose first field has the slice `former`.
  package func isSecondField(of former: SliceSyntax) -> Bool {
    isField && former.isField && isBottom != former.isBottom && frameNumber == former.frameNumber
  }

  /// Returns `true` if this slice's picture is shown before that of `other`, which is near in the stream: by
  /// `pic_order_cnt_lsb`, clause 8.2.1.1. Sequences without that number are taken to be shown in the order of decoding.
  package func isShown(before other: SliceSyntax) -> Bool {
    guard orderCountBits > 0, orderCountBits == other.orderCountBits else { return false }
    let range = 1 << orderCountBits
    return (orderCount - other.orderCount) & (range - 1) >= range / 2
  }
}

/// The parameter sets of a stream, as far as slice headers depend on them: at most 32 of one kind and 256 of the other.
package struct SyntaxTable: Sendable {
  private var sequences: [Int: SequenceSyntax] = [:]
  private var pictures: [Int: PictureSyntax] = [:]

  /// Creates an empty table.
  package init() {}

  /// Returns the SPS of this number; nil where the stream has none.
  package func sequence(_ identifier: Int) -> SequenceSyntax? { sequences[identifier] }

  /// Returns the PPS of this number; nil where the stream has none.
  package func picture(_ identifier: Int) -> PictureSyntax? { pictures[identifier] }

  /// Learns `unit` if it is a parameter set. A later set replaces a former one of the same number.
  package mutating func learn(_ unit: NALUnit) {
    if let sequence = SequenceSyntax(unit) {
      sequences[sequence.identifier] = sequence
    } else if let picture = PictureSyntax(unit) {
      pictures[picture.identifier] = picture
    }
  }

  /// Forgets the SPS of this number, and the PPS that name it.
  package mutating func forget(sequence identifier: Int) {
    sequences[identifier] = nil
    pictures = pictures.filter { $0.value.sequence != identifier }
  }

  /// Forgets the PPS of this number.
  package mutating func forget(picture identifier: Int) { pictures[identifier] = nil }

  /// Forgets all sets.
  package mutating func removeAll() {
    sequences.removeAll()
    pictures.removeAll()
  }
}
