public import Platform

/// A NAL unit's bytes with and without emulation prevention (ITU-T H.264 clause 7.4.1.1).
package enum RawByteSequencePayload {
  /// Returns the bytes without the `03` after every `00 00`.
  package static func removingEmulationPrevention(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var payload: [UInt8] = []
    payload.reserveCapacity(bytes.count)
    var zeros = 0
    for byte in bytes {
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      payload.append(byte)
    }
    return payload
  }

  /// Returns the bytes with a `03` wherever `00 00` would be followed by a byte of 3 or less.
  package static func addingEmulationPrevention(_ payload: some Collection<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(payload.count + 4)
    var prevention = EmulationPrevention()
    for byte in payload { prevention.append(byte, to: &bytes) }
    return bytes
  }
}

/// Emulation prevention (ITU-T H.264 clause 7.4.1.1), a byte at a time.
struct EmulationPrevention: Sendable {
  /// The number of zeros at the end of the bytes so far.
  private var zeros = 0

  /// Creates the state before a NAL unit's first byte.
  init() {}

  /// Appends `byte`, preceded by a `03` where it is 3 or less and follows two zeros.
  mutating func append(_ byte: UInt8, to bytes: inout [UInt8]) {
    if zeros >= 2, byte <= 3 {
      bytes.append(3)
      zeros = 0
    }
    zeros = byte == 0 ? zeros + 1 : 0
    bytes.append(byte)
  }
}

/// A reader of the descriptors of ITU-T H.264 clause 7.2 in a raw byte sequence payload.
struct BitReader {
  private let bytes: [UInt8]
  /// The position of the next bit to read, from the first bit of the first byte.
  private(set) var position = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Reads `u(1)` as a flag.
  mutating func flag() throws(ParameterSetError) -> Bool { try bits(1) == 1 }

  /// Reads `u(n)`, at most 32 bits.
  mutating func bits(_ count: Int) throws(ParameterSetError) -> UInt32 {
    guard count <= 32, position + count <= bytes.count * 8 else { throw .truncated }
    var value: UInt32 = 0
    for _ in 0..<count {
      value = value << 1 | UInt32(bytes[position >> 3] >> UInt8(7 - position & 7) & 1)
      position += 1
    }
    return value
  }

  /// Reads `ue(v)`; throws for a code of more than 32 bits.
  mutating func unsigned() throws(ParameterSetError) -> UInt32 {
    var zeros = 0
    while try !flag() {
      zeros += 1
      guard zeros < 32 else { throw .value("exponential-Golomb code") }
    }
    return try (1 << UInt32(zeros)) - 1 + bits(zeros)
  }

  /// Reads `ue(v)` of at most `limit`.
  mutating func unsigned(to limit: UInt32, _ name: String) throws(ParameterSetError) -> Int {
    let value = try unsigned()
    guard value <= limit else { throw .value(name) }
    return Int(value)
  }

  /// `more_rbsp_data()`, clause 7.2: `true` if anything comes before the payload's last one bit, which ends it.
  var hasMoreData: Bool {
    guard let last = bytes.lastIndex(where: { $0 != 0 }) else { return false }
    return position < last * 8 + 7 - bytes[last].trailingZeroBitCount
  }

  /// Skips `scaling_list()`, clause 7.3.2.1.1.1, of `count` values.
  mutating func skipScalingList(_ count: Int) throws(ParameterSetError) {
    var last: Int32 = 8
    var next: Int32 = 8
    for _ in 0..<count {
      if next != 0 { next = (last &+ (try signed()) &+ 256) % 256 }
      last = next == 0 ? last : next
    }
  }

  /// Reads `se(v)`.
  mutating func signed() throws(ParameterSetError) -> Int32 {
    let code = try unsigned()
    let magnitude = Int32((code + 1) / 2)
    return code.isMultiple(of: 2) ? -magnitude : magnitude
  }
}

/// An error from parsing a parameter set.
public enum ParameterSetError: Failure {
  /// The parameter set ends before its syntax does.
  case truncated
  /// A value is outside the limits of ITU-T H.264 or H.265.
  case value(String)
  /// The NAL unit is not a video parameter set.
  case notVideoParameterSet
  /// The NAL unit is not a sequence parameter set.
  case notSequenceParameterSet
  /// The NAL unit is not a picture parameter set.
  case notPictureParameterSet

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .truncated: "the parameter set is cut off"
    case .value(let name): "the parameter set has an impossible \(name)"
    case .notVideoParameterSet: "not a video parameter set"
    case .notSequenceParameterSet: "not a sequence parameter set"
    case .notPictureParameterSet: "not a picture parameter set"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}
