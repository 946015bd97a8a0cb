import Media

/// The reference pictures that a decoder of HEVC holds, by their picture order counts (ITU-T H.265 clauses 8.3.1 and 8.3.2).
///
/// libavcodec invents a reference that is missing, without a word.
struct HEVCReferences {
  /// The picture order counts of the pictures that later ones may refer to.
  private var known: Set<Int> = []
  /// The picture order count of the last picture of the lowest sub-layer to which others may refer.
  private var anchor = 0
  /// The picture order count of the last picture.
  private var last = 0

  /// Forgets all pictures but the last one.
  mutating func forgetFormer() { known = [last] }

  /// Follows the next picture by its first slice.
  ///
  /// - Parameters:
  ///   - slice: The slice.
  ///   - bits: The number of bits of `slice_pic_order_cnt_lsb`.
  ///   - startsSequence: `true` for an IRAP picture at which decoding starts (NoRaslOutputFlag).
  /// - Throws: ``DecoderError/missingReference``; then nothing has changed.
  mutating func follow(_ slice: HEVCSliceHeader, bits: Int, startsSequence: Bool) throws(DecoderError) {
    let range = 1 << bits
    var count = slice.orderCount
    if !startsSequence {
      let former = anchor & (range - 1)
      count += anchor - former
      if slice.orderCount < former, former - slice.orderCount >= range / 2 {
        count += range
      } else if slice.orderCount > former, slice.orderCount - former > range / 2 {
        count -= range
      }
    }
    var kept: Set<Int> = []
    if !startsSequence {
      for reference in slice.references {
        let found =
          reference.isWhole
          ? known.contains(count + reference.orderCount) ? count + reference.orderCount : nil
          : known.first { $0 & (range - 1) == reference.orderCount }
        if let found {
          kept.insert(found)
        } else if reference.isUsed, !slice.header.type.isKeyFrame {
          throw .missingReference
        }
      }
    }
    (known, last) = (kept, count)
    known.insert(count)
    let type = slice.header.type
    let isLeading = type.isRASL || type == .radlN || type == .radlR
    if slice.header.temporalID == 0, !isLeading, !type.isSubLayerNonReference { anchor = count }
  }
}
