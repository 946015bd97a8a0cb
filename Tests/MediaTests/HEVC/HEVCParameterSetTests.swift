import Foundation
import Media
import TestSupport
import Testing

@Suite struct HEVCParameterSetTests {
  static let variants: [(size: String, parameters: String, arguments: [String])] = [
    ("336x188", "bframes=0", ["-pix_fmt", "yuv420p"]),
    ("322x182", "bframes=3:ref=4:open-gop=1:keyint=8:no-sao=1:ctu=16", ["-pix_fmt", "yuv420p"]),
    ("640x360", "temporal-layers=3:bframes=3:b-pyramid=1:vui-timing-info=1", ["-pix_fmt", "yuv420p"]),
    ("416x240", "hrd=1:vbv-maxrate=900:vbv-bufsize=900:bitrate=800:slices=2", ["-pix_fmt", "yuv420p"]),
    ("352x288", "scaling-list=default:rd=4:amp=1:rect=1:weightp=1:wpp=1", ["-pix_fmt", "yuv420p"]),
    (
      "352x288", "level-idc=6.1:high-tier=1:vbv-maxrate=250000:vbv-bufsize=250000:bitrate=100", ["-pix_fmt", "yuv420p"]
    ),
    ("320x192", "min-cu-size=16:ctu=32:max-tu-size=16:sar=2:overscan=show", ["-pix_fmt", "yuv420p10le"]),
    (
      "320x192", "range=full:colorprim=bt709:transfer=iec61966-2-1:colormatrix=smpte170m:chromaloc=2",
      ["-pix_fmt", "yuv422p"]
    ),
    ("320x192", "display-window=4,2,6,8", ["-pix_fmt", "yuv444p"]),
    ("320x192", "", ["-pix_fmt", "gray"]),
  ]

  @Test(arguments: variants.indices)
  func `the sets of x265 are read as ffmpeg reads them`(index: Int) throws {
    let variant = Self.variants[index]
    let clip = try HEVCClip(size: variant.size, frames: 5, variant.parameters, arguments: variant.arguments)
    let expected = try HEVCClip.headers(of: clip.path, in: clip.directory)
    let sets = try #require(clip.parameterSets)
    let sequence = try HEVCSequenceParameterSet(nalUnit: sets.sequence)
    let video = try HEVCVideoParameterSet(nalUnit: sets.video)
    let picture = try HEVCPictureParameterSet(nalUnit: sets.picture)
    let profile = sequence.profileTierLevel
    #expect(profile == video.profileTierLevel && video.identifier == 0)
    #expect(video.subLayers == (expected["vps_max_sub_layers_minus1"] ?? -1) + 1)
    #expect(video.isTemporallyNested == (expected["vps_temporal_id_nesting_flag"] == 1))
    #expect(Int(profile.profileIDC) == expected["general_profile_idc"])
    #expect(Int(profile.levelIDC) == expected["general_level_idc"])
    #expect(profile.isHighTier == (expected["general_tier_flag"] == 1))
    for flag in 0..<32 {
      #expect(
        Int(profile.compatibilityFlags >> UInt32(31 - flag) & 1)
          == expected["general_profile_compatibility_flag[\(flag)]"])
    }
    #expect(Int(profile.constraintFlags >> 47) == expected["general_progressive_source_flag"])
    #expect(Int(profile.constraintFlags >> 44 & 1) == expected["general_frame_only_constraint_flag"])
    #expect(sequence.subLayers == (expected["sps_max_sub_layers_minus1"] ?? -1) + 1)
    #expect(Int(sequence.chromaFormatIDC) == expected["chroma_format_idc"])
    #expect(sequence.codedSize.width == expected["pic_width_in_luma_samples"])
    #expect(sequence.codedSize.height == expected["pic_height_in_luma_samples"])
    #expect(sequence.size.description == variant.size)
    #expect(Int(sequence.lumaBitDepth) == (expected["bit_depth_luma_minus8"] ?? -1) + 8)
    let highest = sequence.subLayers - 1
    #expect(sequence.pictureBuffers == (expected["sps_max_dec_pic_buffering_minus1[\(highest)]"] ?? -1) + 1)
    #expect(sequence.reorderPictures == expected["sps_max_num_reorder_pics[\(highest)]"])
    let minimum = 3 + (expected["log2_min_luma_coding_block_size_minus3"] ?? 0)
    #expect(sequence.minimumCodingBlock == 1 << minimum)
    #expect(sequence.codingTreeBlock == 1 << (minimum + (expected["log2_diff_max_min_luma_coding_block_size"] ?? 0)))
    #expect(sequence.frameRate == FrameRate(25))
    #expect(sequence.color.isFullRange == (expected["video_full_range_flag"] == 1))
    #expect(Int(sequence.color.primaries) == expected["colour_primaries"] ?? 2)
    #expect(Int(sequence.color.transfer) == expected["transfer_characteristics"] ?? 2)
    #expect(Int(sequence.color.matrix) == expected["matrix_coefficients"] ?? 2)
    #expect(Int(picture.identifier) == expected["pps_pic_parameter_set_id"])
    #expect(picture.initialQuantizer == (expected["init_qp_minus26"] ?? -100) + 26)
    #expect(picture.hasTiles == (expected["tiles_enabled_flag"] == 1))
    #expect(picture.hasWavefronts == (expected["entropy_coding_sync_enabled_flag"] == 1))
    #expect(sequence.hasRangeExtension == (expected["sps_range_extension_flag"] == 1))
  }

  @Test func `every picture of a stream begins with one first slice segment, and names its references`() throws {
    let clip = try HEVCClip(frames: 30, "bframes=3:ref=4:open-gop=1:keyint=10:min-keyint=10:slices=2:b-pyramid=1")
    let sets = try #require(clip.parameterSets)
    let sequence = try HEVCSequenceParameterSet(nalUnit: sets.sequence)
    let picture = try HEVCPictureParameterSet(nalUnit: sets.picture)
    var types: [UInt8] = []
    var orders: [Int] = []
    for unit in try clip.packets() {
      let slices = unit.filter { HEVCClip.type($0) < 32 }
      #expect(slices.count == 2)
      for (index, slice) in slices.enumerated() {
        let header = try slice.withUnsafeBytes { bytes throws in
          let unit = try #require(NALUnit(bytes))
          #expect(HEVCSliceHeader.isFirst(unit) == (index == 0))
          #expect(HEVCSliceHeader.pictureParameterSet(of: unit) == 0)
          return try HEVCSliceHeader(unit, picture: picture, sequence: sequence)
        }
        #expect(header.isFirst == (index == 0) && (header.address > 0) == (index == 1) && !header.isDependent)
        #expect((header.type == .intra) == header.header.type.isKeyFrame)
        if header.type != .intra { #expect(header.references.contains { $0.isUsed }) }
        if index == 0 {
          types.append(header.header.type.rawValue)
          orders.append(header.orderCount)
        }
      }
    }
    // IDR, then CRA pictures, behind each of which come RASL pictures.
    #expect(types.first == 20 || types.first == 19)
    #expect(types.count { $0 == 21 } == 2 && types.contains { $0 == 8 || $0 == 9 })
    #expect(orders[0] == 0 && Set(orders).count == 30)
  }

  @Test(arguments: [
    (PictureSize(width: 1280, height: 720), FrameRate(30)),
    (PictureSize(width: 642, height: 362), FrameRate(30000, 1001)),
    (PictureSize(width: 1080, height: 1920), FrameRate(15)),
  ])
  func `written sets are read by ffmpeg, and say what was meant`(size: PictureSize, rate: FrameRate?) throws {
    var parameters = HEVCSequenceParameters(
      levelIDC: 123, isHighTier: true, size: size,
      color: ColorDescription(primaries: 1, transfer: 13, matrix: 6, isFullRange: true), frameRate: try #require(rate))
    parameters.hasSampleAdaptiveOffset = true
    parameters.codingTreeBlockLog2 = 6
    var writer = BitWriter()
    parameters.writeVideoParameterSet(to: &writer)
    parameters.write(to: &writer)
    HEVCPictureParameters(initialQuantizer: 30).write(to: &writer)
    let written = HEVCClip.nalUnits(writer.bytes)
    let sets = try #require(ParameterSets(video: written[0], sequence: written[1], picture: written[2]))
    let set = try HEVCSequenceParameterSet(nalUnit: sets.sequence)
    #expect(set.size == size && set.frameRate == rate && set.color == parameters.color)
    #expect(set.codingTreeBlock == 64 && set.minimumCodingBlock == 8 && set.reorderPictures == 0)
    #expect(set.profileTierLevel == .main(levelIDC: 123, isHighTier: true))
    #expect(try HEVCPictureParameterSet(nalUnit: sets.picture).initialQuantizer == 30)
    #expect(try HEVCVideoParameterSet(nalUnit: sets.video).profileTierLevel == set.profileTierLevel)
    // A slice behind the sets makes a packet of them; what it holds is of no interest.
    let directory = try TemporaryDirectory()
    let path = directory.path("sets.hevc")
    let slice: [UInt8] = [0, 0, 0, 1, 0x28, 1, 0xaf, 0x40, 0x55, 0x55, 0x55, 0x80]
    try Data(writer.bytes + slice).write(to: URL(fileURLWithPath: path))
    let values = try HEVCClip.headers(of: path, in: directory)
    let expected = [
      "general_profile_idc": 1, "general_tier_flag": 1, "general_level_idc": 123, "chroma_format_idc": 1,
      "pic_width_in_luma_samples": set.codedSize.width, "pic_height_in_luma_samples": set.codedSize.height,
      "sps_max_num_reorder_pics[0]": 0, "num_short_term_ref_pic_sets": 0, "sample_adaptive_offset_enabled_flag": 1,
      "vui_num_units_in_tick": Int(parameters.frameRate.denominator),
      "vui_time_scale": Int(parameters.frameRate.numerator),
      "vps_num_units_in_tick": Int(parameters.frameRate.denominator),
      "vps_time_scale": Int(parameters.frameRate.numerator),
      "colour_primaries": 1, "transfer_characteristics": 13, "matrix_coefficients": 6, "video_full_range_flag": 1,
      "init_qp_minus26": 4, "cu_qp_delta_enabled_flag": 1, "pps_extension_present_flag": 0,
      "sps_extension_present_flag": 0, "vps_extension_flag": 0,
    ]
    for (name, value) in expected { #expect(values[name] == value, "\(name)") }
    let probed = try Subprocess.run(
      ["ffprobe", "-v", "quiet", "-f", "hevc", "-show_entries", "stream=width,height,level", "-of", "csv=p=0", path],
      in: directory)
    #expect(probed.outputText.hasPrefix("\(size.width),\(size.height),123"), "\(probed.outputText)")
  }

  @Test(arguments: [false, true], [false, true])
  func `a written slice header is read back, and by ffmpeg too`(isBidirectional: Bool, hasTools: Bool) throws {
    var sequence = HEVCSequenceParameters(
      levelIDC: 93, size: PictureSize(width: 642, height: 362), color: .bt709, frameRate: .thirty)
    var picture = HEVCPictureParameters(initialQuantizer: 30)
    (sequence.hasSampleAdaptiveOffset, sequence.hasTemporalMotionVectors) = (hasTools, hasTools)
    (sequence.identifier, picture.sequenceParameterSet, picture.identifier) = (7, 7, 41)
    var writer = BitWriter()
    sequence.writeVideoParameterSet(to: &writer)
    sequence.write(to: &writer)
    picture.write(to: &writer)
    for isIDR in [true, false] {
      let header = HEVCSliceParameters(
        isIDR: isIDR, isBidirectional: isBidirectional, orderCount: isIDR ? 0 : 201, quantizerDelta: -4)
      header.write(to: &writer, sequence: sequence, picture: picture)
      // byte_alignment(), and a byte of what would be data.
      writer.trailingBits()
      writer.bits(0x80, 8)
    }
    let units = HEVCClip.nalUnits(writer.bytes)
    try #require(units.count == 5)
    let set = try HEVCSequenceParameterSet(nalUnit: units[1])
    let pictureSet = try HEVCPictureParameterSet(nalUnit: units[2])
    #expect(set.identifier == 7 && set.videoParameterSet == 7 && pictureSet.identifier == 41)
    let slices = try units[3...].map { (bytes: [UInt8]) throws -> HEVCSliceHeader in
      try bytes.withUnsafeBytes { buffer throws in
        let unit = try #require(NALUnit(buffer))
        return try HEVCSliceHeader(unit, picture: pictureSet, sequence: set)
      }
    }
    #expect(slices.map(\.type) == [.intra, isBidirectional ? .bidirectional : .predicted])
    #expect(slices.map(\.orderCount) == [0, 201] && slices.allSatisfy { $0.isFirst && $0.pictureParameterSet == 41 })
    #expect(slices[1].references.map(\.orderCount) == [-1] && slices[1].references.allSatisfy(\.isUsed))
    let directory = try TemporaryDirectory()
    let path = directory.path("slices.hevc")
    try Data(writer.bytes).write(to: URL(fileURLWithPath: path))
    let values = try HEVCClip.headers(of: path, in: directory)
    let expected = [
      "slice_pic_parameter_set_id": 41, "slice_type": 2, "slice_pic_order_cnt_lsb": 201,
      "num_negative_pics": 1, "delta_poc_s0_minus1[0]": 0, "used_by_curr_pic_s0_flag[0]": 1,
      "five_minus_max_num_merge_cand": 0, "slice_qp_delta": -4, "slice_loop_filter_across_slices_enabled_flag": 1,
      "sps_seq_parameter_set_id": 7, "vps_video_parameter_set_id": 7, "pps_pic_parameter_set_id": 41,
    ]
    for (name, value) in expected { #expect(values[name] == value, "\(name)") }
    if hasTools { #expect(values["slice_temporal_mvp_enabled_flag"] == 1 && values["slice_sao_luma_flag"] == 1) }
  }

  @Test func `level, tier and VUI of an encoder's sets are replaced, and nothing else`() throws {
    let clip = try HEVCClip(size: "322x182", frames: 1, "hrd=1:vbv-maxrate=900:vbv-bufsize=900:bitrate=800")
    let sets = try #require(clip.parameterSets)
    let before = try HEVCSequenceParameterSet(nalUnit: sets.sequence)
    let sequence = try HEVCProfileTierLevel.replacingLevel(in: sets.sequence, levelIDC: 150, isHighTier: true)
    let video = try HEVCProfileTierLevel.replacingLevel(in: sets.video, levelIDC: 150, isHighTier: true)
    var after = try HEVCSequenceParameterSet(nalUnit: sequence)
    #expect(after.profileTierLevel.levelIDC == 150 && after.profileTierLevel.isHighTier)
    #expect(try HEVCVideoParameterSet(nalUnit: video).profileTierLevel == after.profileTierLevel)
    #expect(after.size == before.size && after.timing == before.timing && sequence.count >= sets.sequence.count - 2)
    #expect(throws: ParameterSetError.self) {
      try HEVCProfileTierLevel.replacingLevel(in: sets.picture, levelIDC: 150, isHighTier: true)
    }
    let replaced = try HEVCSequenceParameterSet.replacingVUI(
      in: sets.sequence, color: .bt709, frameRate: try #require(FrameRate(30000, 1001)))
    after = try HEVCSequenceParameterSet(nalUnit: replaced)
    #expect(after.color == .bt709 && after.frameRate == FrameRate(30000, 1001))
    #expect(after.size == before.size && after.codingTreeBlock == before.codingTreeBlock)
    #expect(after.profileTierLevel == before.profileTierLevel)
    // A window that the encoder did not write; the picture's size is none of whole blocks.
    let cropped = try HEVCSequenceParameterSet.replacingVUI(
      in: sets.sequence, color: .bt709, frameRate: .thirty, size: PictureSize(width: 318, height: 180))
    let window = try HEVCSequenceParameterSet(nalUnit: cropped)
    #expect(window.size == PictureSize(width: 318, height: 180) && window.codedSize == before.codedSize)
    #expect(throws: ParameterSetError.self) {
      try HEVCSequenceParameterSet.replacingVUI(
        in: sets.sequence, color: .bt709, frameRate: .thirty, size: PictureSize(width: 640, height: 360))
    }
    let smaller = clip.nalUnits.flatMap { AnnexB.startCode + ($0 == sets.sequence ? cropped : $0) }
    let directory = try TemporaryDirectory()
    try Data(smaller).write(to: URL(fileURLWithPath: directory.path("cropped.hevc")))
    let probe = try StreamProbe(path: directory.path("cropped.hevc"), in: directory)
    #expect(probe.values["width"] == "318" && probe.values["height"] == "180" && probe.frames == 1)
    // The stream decodes as before, with the new sets in place of the old ones.
    let pictures = try HEVCClip.checksums(of: clip.stream)
    let other = clip.nalUnits.flatMap { unit in
      AnnexB.startCode + (unit == sets.sequence ? replaced : unit == sets.video ? video : unit)
    }
    #expect(try HEVCClip.checksums(of: other) == pictures && pictures.count == 1)
  }

  @Test(arguments: variants.indices)
  func `a truncated set, or one with a flipped bit, does no harm`(index: Int) throws {
    let variant = Self.variants[index]
    let clip = try HEVCClip(size: variant.size, frames: 1, variant.parameters, arguments: variant.arguments)
    let sets = try #require(clip.parameterSets)
    func read(_ bytes: [UInt8]) -> Bool {
      switch HEVCClip.type(bytes) {
      case 32: (try? HEVCVideoParameterSet(nalUnit: bytes)) != nil
      case 33: (try? HEVCSequenceParameterSet(nalUnit: bytes)) != nil
      default: (try? HEVCPictureParameterSet(nalUnit: bytes)) != nil
      }
    }
    for set in sets.nalUnits {
      #expect(read(set))
      #expect(!read(Array(set[..<4])))
      for bit in 16..<(set.count * 8) {
        var other = set
        other[bit / 8] ^= 0x80 >> UInt8(bit % 8)
        _ = read(other)
      }
    }
    #expect(!read(Array(sets.sequence[..<20])))
    // A set of another layer, or one beyond the limit, is none of ours.
    var layered = sets.sequence
    layered[1] |= 8
    #expect(!read(layered))
    #expect(!read(sets.sequence + [UInt8](repeating: 1, count: ParameterSets.lengthLimit)))
  }
}
