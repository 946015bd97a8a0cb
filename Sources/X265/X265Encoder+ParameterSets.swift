#if X265
  import CX265
  import Media

  extension X265Encoder {
    /// Returns the encoder's VPS and SPS, with the level and the tier of `configuration`, and its PPS.
    static func parameterSets(
      of encoder: OpaquePointer, _ configuration: EncoderConfiguration
    ) throws(EncoderError) -> ParameterSets {
      var units: UnsafeMutablePointer<x265_nal>?
      var unitCount: UInt32 = 0
      let bytes = x265_encoder_headers(encoder, &units, &unitCount)
      guard bytes > 0, let units else { throw .output(library: "x265", "no parameter sets") }
      var sets: [ParameterSetKind: [UInt8]] = [:]
      for index in 0..<Int(unitCount) {
        guard let unit = NALUnit(units[index].bytes) else { continue }
        if case .parameterSet(let kind) = VideoCodec.hevc.role(of: unit) { sets[kind] = Array(unit.bytes) }
      }
      do throws(ParameterSetError) {
        // Without its own rate control, x265 knows no bitrate. Its coded pictures are greater than the frames where a side is no
        // multiple of its least coding unit, 8 or 16.
        let codedSize = try HEVCSequenceParameterSet(nalUnit: sets[.sequence] ?? []).codedSize
        let level = configuration.hevcLevel(codedSize: codedSize)
        for kind in [ParameterSetKind.video, .sequence] {
          guard let set = sets[kind] else { continue }
          sets[kind] = try HEVCProfileTierLevel.replacingLevel(
            in: set, levelIDC: level.identifier, isHighTier: level.isHighTier)
        }
      } catch {
        throw .output(library: "x265", error.description)
      }
      guard let video = sets[.video], let sequence = sets[.sequence], let picture = sets[.picture],
        let result = ParameterSets(video: video, sequence: sequence, picture: picture)
      else { throw .output(library: "x265", "\(unitCount) NAL units that are not one VPS, SPS and PPS each") }
      return result
    }
  }

  extension x265_nal {
    /// The number of bytes before a NAL unit that have its size, in place of a start code.
    private static let prefix = 4

    /// The NAL unit, without the size before it.
    var bytes: UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(start: payload + Self.prefix, count: max(0, Int(sizeBytes) - Self.prefix))
    }
  }
#endif
