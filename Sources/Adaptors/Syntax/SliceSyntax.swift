package import Media

/// The fields of a slice header by which a decoder tells pictures apart (ITU-T H.264 clauses 7.3.3 and 7.4.1.2.4).
package struct SliceSyntax: Hashable, Sendable {
  /// `pic_parameter_set_id`.
  package let pictureParameterSet: Int
  /// `frame_num`.
  package let frameNumber: Int
  /// `true` for a slice of a reference picture: `nal_ref_idc` is not zero.
  package let isReference: Bool
  /// `true` for a slice of an IDR picture.
  package let isIDR: Bool
  /// `field_pic_flag`.
  package private(set) var isField = false
  private var isBottom = false
  private var idrPictureID = 0
  private var orderCount = 0
  private var bottomDelta = 0
  private var (firstDelta, secondDelta) = (0, 0)

  /// Reads the fields of a slice with the sets that the stream has; nil for a slice whose sets are missing, and for
  /// fields that are missing.
  package init?(_ unit: NALUnit, _ sets: SyntaxTable) {
    var reader = HeaderBits(unit)
    guard reader.unsigned() != nil, let type = reader.unsigned(), type <= 9, let set = reader.unsigned(),
      let picture = sets.picture(set), let sequence = sets.sequence(picture.sequence)
    else { return nil }
    if sequence.hasSeparatePlanes { guard reader.bits(2) != nil else { return nil } }
    guard let frameNumber = reader.bits(sequence.frameNumberBits) else { return nil }
    (pictureParameterSet, self.frameNumber) = (set, frameNumber)
    (isReference, isIDR) = (unit.referenceIDC > 0, unit.type == .idrSlice)
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
      orderCount = count
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
  }

  /// Returns `true` if this slice and `former` belong to different pictures, clause 7.4.1.2.4.
  package func beginsPicture(after former: SliceSyntax) -> Bool { self != former }
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

  /// Forgets the SPS of this number.
  package mutating func forget(sequence identifier: Int) { sequences[identifier] = nil }

  /// Forgets all sets.
  package mutating func removeAll() {
    sequences.removeAll()
    pictures.removeAll()
  }
}
