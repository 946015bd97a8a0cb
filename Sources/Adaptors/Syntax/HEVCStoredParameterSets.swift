package import Media

/// The parameter sets of an HEVC stream, parsed and as they came, the last of each number: at most 16 VPS, 16 SPS and 64 PPS, of
/// 32 KB together.
package struct HEVCStoredParameterSets: Sendable {
  private var videos: [Int: [UInt8]] = [:]
  private var sequences: [Int: (bytes: [UInt8], set: HEVCSequenceParameterSet)] = [:]
  private var pictures: [Int: (bytes: [UInt8], set: HEVCPictureParameterSet)] = [:]

  /// The limit of all sets in bytes: real ones have about forty each.
  private static let byteLimit = 32 << 10

  /// Creates an empty store.
  package init() {}

  /// Returns the SPS of this number; nil where the stream has none.
  package func sequence(_ identifier: Int) -> HEVCSequenceParameterSet? { sequences[identifier]?.set }

  /// Returns the PPS of this number; nil where the stream has none.
  package func picture(_ identifier: Int) -> HEVCPictureParameterSet? { pictures[identifier]?.set }

  /// Returns `true` if `unit` is a set that is stored.
  package func holds(_ unit: NALUnit) -> Bool {
    guard case .parameterSet(let kind) = VideoCodec.hevc.role(of: unit) else { return false }
    return switch kind {
    case .video: videos.values.contains { $0.elementsEqual(unit.bytes) }
    case .sequence: sequences.values.contains { $0.bytes.elementsEqual(unit.bytes) }
    case .picture: pictures.values.contains { $0.bytes.elementsEqual(unit.bytes) }
    }
  }

  /// Stores `unit` if it is a parameter set, in place of the former one of its number. The sets that name a former one that
  /// is another one are forgotten: they may mean something else now. Where the limit is exceeded, all
  /// others are forgotten: no honest stream gets there.
  ///
  /// - Throws: ``/Media/ParameterSetError`` for a set that is invalid; the former one of its number is forgotten, if
  ///   the number can be read.
  package mutating func store(_ unit: NALUnit) throws(ParameterSetError) {
    guard case .parameterSet(let kind) = VideoCodec.hevc.role(of: unit), !holds(unit) else { return }
    guard unit.bytes.count <= ParameterSets.lengthLimit else { throw .value("length") }
    let bytes = Array(unit.bytes)
    forget(kind, bytes)
    switch kind {
    case .video:
      let set = try HEVCVideoParameterSet(nalUnit: bytes)
      makeRoom(for: bytes.count)
      videos[Int(set.identifier)] = bytes
    case .sequence:
      let set = try HEVCSequenceParameterSet(nalUnit: bytes)
      makeRoom(for: bytes.count)
      sequences[Int(set.identifier)] = (bytes, set)
    case .picture:
      let set = try HEVCPictureParameterSet(nalUnit: bytes)
      makeRoom(for: bytes.count)
      pictures[Int(set.identifier)] = (bytes, set)
    }
  }

  private mutating func makeRoom(for count: Int) {
    let present =
      videos.values.reduce(0) { $0 + $1.count } + sequences.values.reduce(0) { $0 + $1.bytes.count }
      + pictures.values.reduce(0) { $0 + $1.bytes.count }
    guard present + count > Self.byteLimit else { return }
    videos.removeAll()
    sequences.removeAll()
    pictures.removeAll()
  }

  /// Forgets the former set of the number that `bytes` has.
  private mutating func forget(_ kind: ParameterSetKind, _ bytes: [UInt8]) {
    guard let identifier = kind.identifier(ofHEVC: bytes) else { return }
    switch kind {
    case .video:
      // The SPS stay: senders repeat a VPS with other timing, and decoding depends on nothing in it.
      videos[identifier] = nil
    case .sequence: forget(sequence: identifier)
    case .picture: forget(picture: identifier)
    }
  }

  /// Forgets the SPS of this number, and the PPS that name it.
  package mutating func forget(sequence identifier: Int) {
    sequences[identifier] = nil
    pictures = pictures.filter { Int($0.value.set.sequenceParameterSet) != identifier }
  }

  /// Forgets the PPS of this number.
  package mutating func forget(picture identifier: Int) { pictures[identifier] = nil }

  /// Returns the SPS of this number as a byte stream, with its VPS before it; nil where one is missing.
  package func annexB(sequence identifier: Int) -> [UInt8]? {
    guard let sequence = sequences[identifier], let video = videos[Int(sequence.set.videoParameterSet)] else {
      return nil
    }
    return AnnexB.startCode + video + AnnexB.startCode + sequence.bytes
  }

  /// Returns the PPS of these numbers as a byte stream, with their VPS and SPS before them; nil where one is missing.
  package func annexB(pictures identifiers: some Sequence<Int>) -> [UInt8]? {
    var (first, second): ([UInt8], [UInt8]) = ([], [])
    var written: Set<Int> = []
    for identifier in identifiers {
      guard let picture = pictures[identifier] else { return nil }
      let sequence = Int(picture.set.sequenceParameterSet)
      guard let sets = annexB(sequence: sequence) else { return nil }
      if written.insert(sequence).inserted { first += sets }
      second += AnnexB.startCode + picture.bytes
    }
    return first + second
  }

  /// Returns VPS and SPS that the PPS of this number names, and all PPS that name it, as a byte stream; empty where one of them
  /// is missing. Pictures up to the next IRAP picture name no others.
  package func annexB(sequenceOfPicture identifier: Int) -> [UInt8] {
    guard let picture = pictures[identifier], let sets = annexB(sequence: Int(picture.set.sequenceParameterSet)) else {
      return []
    }
    return pictures.filter { $0.value.set.sequenceParameterSet == picture.set.sequenceParameterSet }
      .sorted { $0.key < $1.key }.reduce(into: sets) { $0 += AnnexB.startCode + $1.value.bytes }
  }
}

extension ParameterSetKind {
  /// Reads the number of a parameter set of HEVC, even if what follows it is invalid; nil where it is missing.
  fileprivate func identifier(ofHEVC bytes: [UInt8]) -> Int? {
    switch self {
    case .video: bytes.count > HEVCNALUnitHeader.byteCount ? Int(bytes[HEVCNALUnitHeader.byteCount] >> 4) : nil
    case .sequence: HEVCSequenceParameterSet.identifier(nalUnit: bytes)
    case .picture: HEVCPictureParameterSet.identifier(nalUnit: bytes)
    }
  }
}

/// The parameter sets of a stream of either codec, as a receiver keeps them.
package enum StreamParameterSets: Sendable {
  case h264(StoredParameterSets)
  case hevc(HEVCStoredParameterSets)

  /// Creates a store of these NAL units, in their order; the invalid ones are left out.
  package init(_ codec: VideoCodec, _ units: [[UInt8]] = []) {
    self = codec == .hevc ? .hevc(HEVCStoredParameterSets()) : .h264(StoredParameterSets())
    for unit in units { unit.withUnsafeBytes { if let unit = NALUnit($0) { store(unit) } } }
  }

  /// Stores `unit` if it is a valid parameter set.
  package mutating func store(_ unit: NALUnit) {
    switch self {
    case .h264(var sets):
      // The other reference would make the store copy its dictionaries.
      self = .h264(StoredParameterSets())
      sets.store(unit)
      self = .h264(sets)
    case .hevc(var sets):
      self = .hevc(HEVCStoredParameterSets())
      // One that is not valid is left out, as with H.264: no picture is decoded by it.
      try? sets.store(unit)
      self = .hevc(sets)
    }
  }

  /// Returns the sets that a decoder needs to start at a slice with this PPS, as a byte stream; empty where one is missing.
  package func annexB(sequenceOfPicture identifier: Int) -> [UInt8] {
    switch self {
    case .h264(let sets): sets.annexB(sequenceOfPicture: identifier)
    case .hevc(let sets): sets.annexB(sequenceOfPicture: identifier)
    }
  }
}

extension VideoCodec {
  /// Returns the number of the PPS that a slice of this codec names; nil where it is missing.
  package func pictureParameterSet(of slice: NALUnit) -> Int? {
    switch self {
    case .h264: SliceSyntax.pictureParameterSet(of: slice)
    case .hevc: HEVCSliceHeader.pictureParameterSet(of: slice)
    }
  }
}
