/// A parsed video parameter set of HEVC (ITU-T H.265 clause 7.3.2.1), with the fields that a receiver needs.
public struct HEVCVideoParameterSet: Hashable, Sendable {
  /// `vps_video_parameter_set_id`, 0…15.
  public let identifier: UInt8
  /// The number of temporal sub-layers, 1…7: `vps_max_sub_layers_minus1` + 1.
  public let subLayers: Int
  /// `vps_temporal_id_nesting_flag`.
  public let isTemporallyNested: Bool
  /// Profile, tier and level.
  public let profileTierLevel: HEVCProfileTierLevel

  /// Parses a VPS NAL unit, header first. What follows the profile, tier and level is not read.
  ///
  /// - Throws: ``ParameterSetError`` for invalid data.
  public init(nalUnit: [UInt8]) throws(ParameterSetError) {
    var reader = try HEVCParameterSetReading.reader(nalUnit, .video)
    identifier = UInt8(try reader.bits(4))
    try reader.skip(2)  // vps_base_layer_internal_flag, vps_base_layer_available_flag
    try reader.skip(6)  // vps_max_layers_minus1: what is above the base layer is not decoded
    let layers = Int(try reader.bits(3)) + 1
    guard layers <= 7 else { throw .value("vps_max_sub_layers_minus1") }
    subLayers = layers
    isTemporallyNested = try reader.flag()
    try reader.skip(16)  // vps_reserved_0xffff_16bits
    profileTierLevel = try HEVCProfileTierLevel(&reader, subLayers: layers)
  }
}
