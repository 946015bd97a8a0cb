/// A short-term reference picture set: `st_ref_pic_set()`, ITU-T H.265 clauses 7.3.7 and 7.4.8.
struct HEVCReferencePictureSet: Hashable, Sendable {
  /// A picture of the set.
  struct Entry: Hashable, Sendable {
    /// The difference of its picture order count to that of the present picture, never 0.
    var delta: Int
    /// `true` if the present picture refers to it; `false` if only later ones do.
    var isUsed: Bool
  }

  /// The pictures that are shown before the present one, the nearest first.
  private(set) var negative: [Entry] = []
  /// The pictures that are shown after the present one, the nearest first.
  private(set) var positive: [Entry] = []

  /// The limit of pictures in a set: `sps_max_dec_pic_buffering_minus1` is at most 15 (clause A.4.2).
  private static let countLimit: UInt32 = 16
  /// The limit of differences, which have 15 bits and a sign.
  private static let deltaLimit: UInt32 = (1 << 15) - 1

  /// All pictures of the set.
  var entries: [Entry] { negative + positive }

  /// Reads set number `index`, which may be predicted by one of `sets`: those of the SPS before it, and in a slice header all.
  init(
    _ reader: inout BitReader, index: Int, among sets: [HEVCReferencePictureSet], isInSlice: Bool
  ) throws(ParameterSetError) {
    if index > 0, try reader.flag() {  // inter_ref_pic_set_prediction_flag
      try readPredicted(&reader, index: index, among: sets, isInSlice: isInSlice)
    } else {
      try readPlain(&reader)
    }
    guard negative.count + positive.count <= Int(Self.countLimit) else { throw .value("number of reference pictures") }
  }

  private mutating func readPlain(_ reader: inout BitReader) throws(ParameterSetError) {
    let before = try reader.unsigned(to: Self.countLimit, "num_negative_pics")
    let after = try reader.unsigned(to: Self.countLimit, "num_positive_pics")
    var delta = 0
    for _ in 0..<before {
      delta -= try reader.unsigned(to: Self.deltaLimit, "delta_poc_s0_minus1") + 1
      negative.append(Entry(delta: delta, isUsed: try reader.flag()))
    }
    delta = 0
    for _ in 0..<after {
      delta += try reader.unsigned(to: Self.deltaLimit, "delta_poc_s1_minus1") + 1
      positive.append(Entry(delta: delta, isUsed: try reader.flag()))
    }
  }

  private mutating func readPredicted(
    _ reader: inout BitReader, index: Int, among sets: [HEVCReferencePictureSet], isInSlice: Bool
  ) throws(ParameterSetError) {
    let distance = isInSlice ? try reader.unsigned(to: UInt32(index - 1), "delta_idx_minus1") + 1 : 1
    let isBackward = try reader.flag()
    let magnitude = try reader.unsigned(to: Self.deltaLimit, "abs_delta_rps_minus1") + 1
    let shift = isBackward ? -magnitude : magnitude
    let source = sets[index - distance]
    // Flags for each picture of the source, and for the picture that has the source.
    var flags: [(isUsed: Bool, isKept: Bool)] = []
    for _ in 0...source.negative.count + source.positive.count {
      let isUsed = try reader.flag()
      flags.append((isUsed, isUsed ? true : try reader.flag()))
    }
    let own = (delta: shift, flags: flags[flags.count - 1])
    let before = source.negative.indices.map { (delta: source.negative[$0].delta + shift, flags: flags[$0]) }
    let after = source.positive.indices.map {
      (delta: source.positive[$0].delta + shift, flags: flags[source.negative.count + $0])
    }
    func kept(_ candidates: [(delta: Int, flags: (isUsed: Bool, isKept: Bool))], sign: Int) -> [Entry] {
      candidates.filter { $0.delta.signum() == sign && $0.flags.isKept }
        .map { Entry(delta: $0.delta, isUsed: $0.flags.isUsed) }
    }
    negative = kept(after.reversed() + [own] + before, sign: -1)
    positive = kept(before.reversed() + [own] + after, sign: 1)
  }
}
