import Foundation
import Media
import TestSupport
import Testing

@Suite struct ParameterSetParsingTests {
  struct Variant: CustomTestStringConvertible, Sendable {
    let size: String
    let rate: String
    let arguments: [String]
    var testDescription: String { "\(size) at \(rate): \(arguments.joined(separator: " "))" }
  }

  static let variants = [
    Variant(size: "1920x1080", rate: "30000/1001", arguments: ["-profile:v", "baseline", "-pix_fmt", "yuv420p"]),
    Variant(size: "642x362", rate: "15", arguments: ["-profile:v", "main", "-pix_fmt", "yuv420p", "-refs", "3"]),
    Variant(
      size: "1280x720", rate: "60", arguments: ["-profile:v", "high", "-pix_fmt", "yuv420p", "-level", "4.2"]),
    Variant(
      size: "176x144", rate: "15/2",
      arguments: ["-profile:v", "baseline", "-pix_fmt", "yuv420p", "-x264-params", "level=1b:keyint=9:aud=1"]),
    Variant(
      size: "640x480", rate: "25", arguments: ["-profile:v", "high", "-pix_fmt", "yuv420p", "-x264-params", "cqm=jvt"]),
    Variant(
      size: "720x576", rate: "25",
      arguments: ["-pix_fmt", "yuv420p", "-x264-params", "tff=1:nal-hrd=vbr:vbv-maxrate=900:vbv-bufsize=900"]),
    Variant(size: "326x182", rate: "24", arguments: ["-profile:v", "high422", "-pix_fmt", "yuv422p10le"]),
    Variant(size: "326x182", rate: "24", arguments: ["-profile:v", "high444", "-pix_fmt", "yuv444p"]),
  ]

  @Test(arguments: variants)
  func `an SPS says what ffprobe says of it`(variant: Variant) throws {
    let sample = try EncodedSample(size: variant.size, rate: variant.rate, frames: 3, variant.arguments)
    let set = try SequenceParameterSet(nalUnit: sample.first(7))
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-show_entries",
        "stream=profile,level,width,height,coded_width,coded_height,r_frame_rate,pix_fmt", "-of",
        "json", sample.path,
      ], in: sample.directory)
    let json = try JSONSerialization.jsonObject(with: probe.output) as? [String: Any]
    let stream = try #require((json?["streams"] as? [[String: Any]])?.first)
    #expect(set.size.width == stream["width"] as? Int && set.size.height == stream["height"] as? Int)
    #expect(Int(set.levelIDC) == stream["level"] as? Int || set.level == "1b")
    let rate = try #require(set.frameRate)
    #expect("\(rate.numerator)/\(rate.denominator)" == stream["r_frame_rate"] as? String)
    let profiles: [String: H264Profile] = ["Constrained Baseline": .baseline, "Main": .main, "High": .high]
    #expect(set.profile == profiles[try #require(stream["profile"] as? String)])
    let format = [1: "420p", 2: "422p", 3: "444p"][Int(set.chromaFormatIDC)] ?? ""
    #expect(stream["pix_fmt"] as? String == "yuv\(format)" + (set.lumaBitDepth > 8 ? "\(set.lumaBitDepth)le" : ""))

    // What ffprobe does not tell, ffmpeg's own header parser does.
    let headers = try sample.headers()
    #expect(Int(set.profileIDC) == headers["profile_idc"])
    #expect(set.referenceFrames == headers["max_num_ref_frames"])
    #expect(Int(set.identifier) == headers["seq_parameter_set_id"])
    #expect(set.codedSize.width == (try #require(headers["pic_width_in_mbs_minus1"]) + 1) * 16)
    let fields = set.isProgressive ? 1 : 2
    #expect(headers["frame_mbs_only_flag"] == (set.isProgressive ? 1 : 0))
    #expect(set.codedSize.height == (try #require(headers["pic_height_in_map_units_minus1"]) + 1) * 16 * fields)
    #expect(set.cropping.right == (headers["frame_crop_right_offset"] ?? 0) * (set.chromaFormatIDC == 3 ? 1 : 2))
    #expect(
      set.cropping.bottom
        == (headers["frame_crop_bottom_offset"] ?? 0) * (set.chromaFormatIDC == 1 ? 2 : 1) * fields)
    #expect(set.cropping.left == 0 && set.cropping.top == 0)
    #expect(set.size.height == set.codedSize.height - set.cropping.bottom)
    #expect(Int(set.timing?.timeScale ?? 0) == headers["time_scale"])
    #expect(Int(set.timing?.unitsInTick ?? 0) == headers["num_units_in_tick"])
  }

  @Test(arguments: variants)
  func `a PPS says what ffmpeg reads in it`(variant: Variant) throws {
    let sample = try EncodedSample(size: variant.size, rate: variant.rate, frames: 3, variant.arguments)
    let sequence = try SequenceParameterSet(nalUnit: sample.first(7))
    let bytes = sample.first(8)
    let set = try PictureParameterSet(nalUnit: bytes, chromaFormatIDC: sequence.chromaFormatIDC)
    let headers = try sample.headers()
    #expect((set.usesCABAC ? 1 : 0) == headers["entropy_coding_mode_flag"])
    #expect((set.uses8x8Transform ? 1 : 0) == headers["transform_8x8_mode_flag"] ?? 0)
    #expect(set.initialQuantizer == 26 + (headers["pic_init_qp_minus26"] ?? 99))
    #expect(try PictureParameterSet.identifier(nalUnit: bytes) == headers["pic_parameter_set_id"])
    for length in 0..<2 {
      #expect(throws: ParameterSetError.self) { try PictureParameterSet(nalUnit: Array(bytes[..<length])) }
    }
    for bit in 0..<bytes.count * 8 {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      _ = try? PictureParameterSet(nalUnit: damaged)
    }
    #expect(throws: ParameterSetError.self) { try PictureParameterSet(nalUnit: sample.first(7)) }
  }

  @Test(arguments: H264Profile.allCases, [0, 26, 51])
  func `a PPS of ours is read back`(profile: H264Profile, quantizer: Int) throws {
    let set = PictureParameterSet(profile: profile, initialQuantizer: quantizer)
    var writer = BitWriter()
    set.write(to: &writer)
    #expect(try PictureParameterSet(nalUnit: Array(writer.bytes.dropFirst(4))) == set)
  }

  /// A PPS with slice groups, which nothing here makes: clause 7.3.2.2 by hand.
  @Test(arguments: 0...6) func `slice groups are passed over`(type: UInt32) throws {
    var writer = BitWriter()
    writer.begin(header: 0x68)
    for value: UInt32 in [0, 0] { writer.unsigned(value) }
    writer.bits(0b10, 2)
    writer.unsigned(2)  // three groups
    writer.unsigned(type)
    switch type {
    case 0: for run: UInt32 in [3, 4, 5] { writer.unsigned(run) }
    case 2: for corner: UInt32 in [0, 5, 6, 9] { writer.unsigned(corner) }
    case 3, 4, 5:
      writer.flag(true)
      writer.unsigned(7)
    case 6:
      writer.unsigned(9)
      for unit in 0..<10 { writer.bits(UInt32(unit % 3), 2) }
    default: break
    }
    for value: UInt32 in [0, 0] { writer.unsigned(value) }
    writer.bits(0, 3)
    for value: Int32 in [-7, 0, 0] { writer.signed(value) }
    writer.bits(0b100, 3)
    writer.trailingBits()
    let set = try PictureParameterSet(nalUnit: Array(writer.bytes.dropFirst(4)))
    #expect(set.usesCABAC && !set.uses8x8Transform && set.initialQuantizer == 19)
  }
}
