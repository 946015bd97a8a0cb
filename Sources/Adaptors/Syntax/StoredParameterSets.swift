package import Media

/// The parameter sets of a stream as they came, the last of each number: at most 32 SPS and 256 PPS, of 32 KB together.
package struct StoredParameterSets: Sendable {
  private var sequences: [Int: [UInt8]] = [:]
  private var pictures: [Int: (bytes: [UInt8], sequence: Int)] = [:]

  /// The limit of all sets in bytes: real ones have about forty each.
  private static let byteLimit = 32 << 10

  /// Creates a store of these NAL units, in their order.
  package init(_ units: [[UInt8]] = []) {
    for unit in units { unit.withUnsafeBytes { if let unit = NALUnit($0) { store(unit) } } }
  }

  /// `true` if there is none.
  package var isEmpty: Bool { sequences.isEmpty && pictures.isEmpty }

  private mutating func makeRoom(for count: Int) {
    let present = sequences.values.reduce(0) { $0 + $1.count } + pictures.values.reduce(0) { $0 + $1.bytes.count }
    guard present + count > Self.byteLimit else { return }
    sequences.removeAll()
    pictures.removeAll()
  }

  /// Returns `true` if `unit` is an SPS that is stored.
  package func holds(_ unit: NALUnit) -> Bool { sequences.values.contains { $0.elementsEqual(unit.bytes) } }

  /// Stores `unit` if it is a parameter set, in place of the former one of its number. The PPS of a former SPS that is
  /// another one are forgotten: they may mean something else now. Where the limit is exceeded, all
  /// others are forgotten: no honest stream gets there.
  package mutating func store(_ unit: NALUnit) {
    guard unit.bytes.count <= ParameterSets.lengthLimit else { return }
    if let sequence = SequenceSyntax(unit) {
      guard sequences[sequence.identifier]?.elementsEqual(unit.bytes) != true else { return }
      forget(sequence: sequence.identifier)
      makeRoom(for: unit.bytes.count)
      sequences[sequence.identifier] = Array(unit.bytes)
    } else if let picture = PictureSyntax(unit) {
      forget(picture: picture.identifier)
      makeRoom(for: unit.bytes.count)
      pictures[picture.identifier] = (Array(unit.bytes), picture.sequence)
    }
  }

  /// Forgets the SPS of this number, and the PPS that name it.
  package mutating func forget(sequence identifier: Int) {
    sequences[identifier] = nil
    pictures = pictures.filter { $0.value.sequence != identifier }
  }

  /// Forgets the PPS of this number.
  package mutating func forget(picture identifier: Int) { pictures[identifier] = nil }

  /// Returns the SPS of this number as a byte stream; nil where there is none.
  package func annexB(sequence identifier: Int) -> [UInt8]? { sequences[identifier].map { AnnexB.startCode + $0 } }

  /// Returns the PPS of these numbers as a byte stream, with their SPS before them; nil where one is missing.
  package func annexB(pictures identifiers: some Sequence<Int>) -> [UInt8]? {
    var (first, second): ([UInt8], [UInt8]) = ([], [])
    var written: Set<Int> = []
    for identifier in identifiers {
      guard let picture = pictures[identifier], let sequence = sequences[picture.sequence] else { return nil }
      if written.insert(picture.sequence).inserted { first += AnnexB.startCode + sequence }
      second += AnnexB.startCode + picture.bytes
    }
    return first + second
  }

  /// Returns the SPS that the PPS of this number names, and all PPS that name it, as a byte stream; empty where one of both is
  /// missing. Pictures up to the next IDR picture name no others.
  package func annexB(sequenceOfPicture identifier: Int) -> [UInt8] {
    guard let number = pictures[identifier]?.sequence, let sequence = sequences[number] else { return [] }
    let pictures = pictures.filter { $0.value.sequence == number }.sorted { $0.key < $1.key }.map(\.value.bytes)
    return ([sequence] + pictures).reduce(into: []) { $0 += AnnexB.startCode + $1 }
  }
}
