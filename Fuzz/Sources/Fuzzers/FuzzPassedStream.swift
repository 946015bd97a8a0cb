import Encoding
import Media
import Platform

/// Any bytes as a camera's own H.264, with lost pictures, pauses and frames of samples between them. A viewer gets slices as they
/// came, behind the parameter sets that they mean, and nothing between a loss and the next key frame.
enum FuzzPassedStream {
  static func take(_ input: UnsafeRawBufferPointer) {
    PassedStreamRun(input)?.run()
  }
}

/// One run. The input's first byte chooses the profile. After it come pictures: a byte of ``Action``, two bytes of length, and the
/// camera's bytes.
final class PassedStreamRun: AccessUnitSink {
  /// The fate of a picture.
  struct Action: OptionSet {
    let rawValue: UInt8
    /// A picture before it is lost.
    static let loss = Action(rawValue: 1)
    /// A key frame is due.
    static let keyFrameDue = Action(rawValue: 2)
    /// A frame of samples comes instead.
    static let samples = Action(rawValue: 4)
    /// Three seconds pass before it.
    static let late = Action(rawValue: 8)
  }

  static let size = PictureSize(width: 64, height: 48)
  private static let pool: FramePool = {
    do { return try FramePool(size: size) } catch { fatalError("\(error)") }
  }()

  private var script: UnsafeRawBufferPointer.SubSequence
  private let profile: H264Profile
  private let link = PassThrough { _ in }
  private let encoder: PassThroughEncoder
  private var time = Instant.zero
  private var number: UInt64 = 0
  /// The camera's bytes of the present picture; nil for a frame of samples.
  private var coded: UnsafeRawBufferPointer?
  private var delivered = 0
  /// `true` if a picture that is no key frame can be decoded.
  private var isFollowing = false
  private var pictureSet: Int?

  init?(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return nil }
    profile = H264Profile.allCases[Int(first) % H264Profile.allCases.count]
    script = input[1...]
    encoder = PassThroughEncoder(SampleEncoder(size: Self.size), size: Self.size, profile: profile, link: link)
  }

  func run() {
    while let action = script.popFirst().map(Action.init(rawValue:)) {
      if action.contains(.loss) { (number, isFollowing) = (number + 1, false) }
      time = time + Duration.milliseconds(action.contains(.late) ? 3000 : 33)
      if action.contains(.samples) {
        take(nil, action)
        isFollowing = false
      } else {
        let length = Int(script.popFirst() ?? 0) << 8 | Int(script.popFirst() ?? 0)
        let bytes = script.prefix(length)
        script = script.dropFirst(length)
        take(UnsafeRawBufferPointer(rebasing: bytes), action)
        number += 1
      }
    }
    precondition(encoder.counters.passed <= number)
  }

  private func take(_ bytes: UnsafeRawBufferPointer?, _ action: Action) {
    guard var frame = Self.pool.checkout(color: .bt709, timestamp: time, captured: time) else {
      fatalError("a frame was kept")
    }
    let before = encoder.counters
    (coded, delivered) = (bytes, 0)
    if let bytes { frame.coded = CameraCodedPicture(bytes: bytes, number: number) }
    do throws(EncoderError) {
      try encoder.encode(frame, keyFrame: action.contains(.keyFrameDue), to: self)
    } catch {
      fatalError("an error of the encoder for the camera's bytes: \(error)")
    }
    let after = encoder.counters
    if bytes == nil {
      precondition(delivered == 1, "\(delivered) pictures of one frame")
    } else {
      precondition(delivered == after.passed - before.passed && delivered <= 1, "another count")
      precondition(delivered == 0 || after.undecodable == before.undecodable, "passed and lost")
      if after.undecodable > before.undecodable { isFollowing = false }
    }
  }

  func take(_ unit: borrowing AccessUnit) {
    delivered += 1
    guard let coded else { return }
    precondition(unit.isKeyFrame || isFollowing, "a picture whose reference is missing")
    if unit.isKeyFrame { checkSets(unit) }
    isFollowing = true
    var slices = 0
    for nal in unit.nalUnits.dropFirst(unit.isKeyFrame ? 2 : 0) {
      precondition(nal.type == (unit.isKeyFrame ? .idrSlice : .nonIDRSlice), "a slice of another kind")
      precondition(nal.sliceBeginning?.pictureParameterSet == pictureSet, "a slice of other parameter sets")
      precondition(Self.isWithin(nal.bytes, coded), "bytes that the camera did not send")
      check(nal.bytes)
      slices += 1
    }
    precondition(slices > 0 && unit.nalUnits.count <= AccessUnit.nalUnitLimit, "\(slices) slices")
  }

  private func checkSets(_ unit: borrowing AccessUnit) {
    precondition(unit.nalUnits.count > 2, "a key frame without its parameter sets")
    let (sequence, picture) = (unit.nalUnits[0], unit.nalUnits[1])
    check(sequence.bytes)
    check(picture.bytes)
    guard let set = try? SequenceParameterSet(nalUnit: Array(sequence.bytes)),
      (try? PictureParameterSet(nalUnit: Array(picture.bytes))) != nil,
      let beginning = picture.pictureParameterSetBeginning
    else { fatalError("parameter sets that cannot be read") }
    precondition(set.size == Self.size && set.isProgressive && set.chromaFormatIDC == 1, "other pictures")
    precondition(set.lumaBitDepth == 8 && set.chromaBitDepth == 8, "other samples")
    precondition(set.reorderFrames == 0 && set.frameRate != nil, "a VUI that makes players wait")
    guard let stated = set.profile else { fatalError("profile \(set.profileIDC)") }
    precondition(stated.indication <= profile.indication, "a profile beyond that of the viewers")
    precondition(beginning.sequence == Int(set.identifier) && beginning.sliceGroups == 1, "a PPS of another SPS")
    pictureSet = beginning.identifier
  }

  /// Checks that no NAL unit has a start code in it (clause 7.4.1), or ends as none does.
  private func check(_ bytes: UnsafeRawBufferPointer) {
    precondition(bytes[0] & 0x80 == 0 && bytes[bytes.count - 1] != 0)
    var zeros = 0
    for byte in bytes {
      precondition(zeros < 2 || byte != 1, "a start code within a NAL unit")
      zeros = byte == 0 ? zeros + 1 : 0
    }
  }

  private static func isWithin(_ part: UnsafeRawBufferPointer, _ whole: UnsafeRawBufferPointer) -> Bool {
    guard let part = part.baseAddress.map({ ($0, $0 + part.count) }),
      let whole = whole.baseAddress.map({ ($0, $0 + whole.count) })
    else { return false }
    return part.0 >= whole.0 && part.1 <= whole.1
  }
}

/// The encoder of samples beside it, whose pictures are headers alone.
final class SampleEncoder: VideoEncoder, @unchecked Sendable {
  // Sendable: one thread uses it.

  private(set) var configuration: EncoderConfiguration
  let name = "headers"
  private var identifier: UInt32 = 0
  private var hasBegun = false
  private let sets: [[UInt8]]

  init(size: PictureSize) {
    configuration = EncoderConfiguration(size: size, frameRate: .thirty, bitrate: 500_000, color: .bt709)
    var writer = BitWriter()
    SequenceParameters(profile: .baseline, levelIDC: 10, size: size, color: .bt709, frameRate: .thirty).write(
      to: &writer)
    // pic_parameter_set_id and seq_parameter_set_id 0, CAVLC, one slice group, the initial quantizer 26.
    sets = [Array(writer.bytes.dropFirst(AnnexB.startCode.count)), [0x68, 0xce, 0x3c, 0x80]]
  }

  var parameterSets: ParameterSets {
    guard let sets = ParameterSets(sequence: sets[0], picture: sets[1]) else { fatalError("no parameter sets") }
    return sets
  }

  func encode(_ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink) throws(EncoderError) {
    let isKeyFrame = keyFrame || !hasBegun
    hasBegun = true
    var writer = BitWriter()
    writer.begin(header: isKeyFrame ? 0x65 : 0x41)
    // first_mb_in_slice, slice_type, pic_parameter_set_id, frame_num, idr_pic_id.
    for value: UInt32 in [0, isKeyFrame ? 7 : 5, 0] { writer.unsigned(value) }
    writer.bits(0, SequenceParameters.frameNumberBits)
    if isKeyFrame {
      identifier ^= 1
      writer.unsigned(identifier)
    }
    writer.trailingBits()
    let slice = Array(writer.bytes.dropFirst(AnnexB.startCode.count))
    let timestamp = frame.timestamp
    let units = isKeyFrame ? sets + [slice] : [slice]
    units.flatMap { $0 }.withUnsafeBytes { bytes in
      var start = 0
      let lent = units.compactMap { unit in
        defer { start += unit.count }
        return NALUnit(UnsafeRawBufferPointer(rebasing: bytes[start..<start + unit.count]))
      }
      lent.withUnsafeBufferPointer {
        sink.take(AccessUnit(nalUnits: $0, isKeyFrame: isKeyFrame, timestamp: timestamp, captured: timestamp))
      }
    }
  }

  func prepare() {}
  func change(bitrate: Int, frameRate: FrameRate) { configuration.bitrate = bitrate }
  func flush(deliver: (borrowing AccessUnit) -> Void) {}
  func stop() {}
}
