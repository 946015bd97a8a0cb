import CVA
import Media

/// A libva config: one profile, entry point, rate control mode and set of packed headers.
final class VAConfiguration {
  let display: VADisplayConnection
  let identifier: VAConfigID

  /// Creates the config. Without `mode` the driver uses its default rate control.
  ///
  /// - Throws: ``EncoderError`` if the driver refuses a config that it lists.
  init(
    _ display: VADisplayConnection, _ encoder: VAAPICapabilities.Encoder, mode: VAAPICapabilities.RateControlMode?,
    packed: VAAPICapabilities.PackedHeaders
  ) throws(EncoderError) {
    var attributes = [VAConfigAttrib(type: VAConfigAttribRTFormat, value: UInt32(VA_RT_FORMAT_YUV420))]
    if let mode { attributes.append(VAConfigAttrib(type: VAConfigAttribRateControl, value: mode.vaMode)) }
    if !packed.isEmpty {
      attributes.append(VAConfigAttrib(type: VAConfigAttribEncPackedHeaders, value: packed.rawValue))
    }
    var identifier = VAConfigID(VA_INVALID_ID)
    let status = vaCreateConfig(
      display.handle, encoder.profile.vaProfile, encoder.entryPoint.vaEntryPoint, &attributes, CInt(attributes.count),
      &identifier)
    guard status == VA_STATUS_SUCCESS else {
      throw .call(
        library: "VA-API", function: "vaCreateConfig", code: Int(status),
        reason: "\(display.vendor) lists \(encoder.entryPoint.rawValue) for \(encoder.profile), but refuses it: "
          + VADisplayConnection.text(vaErrorStr(status)))
    }
    self.display = display
    self.identifier = identifier
  }

  deinit {
    vaDestroyConfig(display.handle, identifier)
  }

  /// The limits of surfaces for this config.
  struct SurfaceLimits {
    var minimum: PictureSize?
    var maximum: PictureSize?
    var takesNV12 = true
    var importsDMABuffers = false
  }

  /// Queries the limits of surfaces. If the driver does not answer, no limits apply.
  ///
  /// - Throws: ``EncoderError`` if the answer is impossible.
  func surfaceLimits() throws(EncoderError) -> SurfaceLimits {
    var limits = SurfaceLimits()
    var count: UInt32 = 0
    guard vaQuerySurfaceAttributes(display.handle, identifier, nil, &count) == VA_STATUS_SUCCESS, count > 0 else {
      return limits
    }
    guard count <= VAAPICapabilities.listLimit else {
      throw .output(
        library: "VA-API", "\(count) surface attributes, at most \(VAAPICapabilities.listLimit) are believed")
    }
    let announced = count
    var list = [VASurfaceAttrib](repeating: VASurfaceAttrib(), count: Int(count))
    try check(
      vaQuerySurfaceAttributes(display.handle, identifier, &list, &count), "vaQuerySurfaceAttributes")
    guard count <= announced else {
      throw .output(library: "VA-API", "\(count) surface attributes where \(announced) were announced")
    }
    var formats: [UInt32] = []
    var (smallest, largest) = ((0, 0), (0, 0))
    for attribute in list.prefix(Int(count)) where attribute.flags & UInt32(VA_SURFACE_ATTRIB_GETTABLE) != 0 {
      guard attribute.value.type == VAGenericValueTypeInteger else { continue }
      let value = attribute.value.value.i
      let length = Int(max(0, min(value, CInt(PictureSize.limit))))
      switch attribute.type {
      case VASurfaceAttribPixelFormat: formats.append(UInt32(bitPattern: value))
      case VASurfaceAttribMinWidth: smallest.0 = length
      case VASurfaceAttribMinHeight: smallest.1 = length
      case VASurfaceAttribMaxWidth: largest.0 = length
      case VASurfaceAttribMaxHeight: largest.1 = length
      case VASurfaceAttribMemoryType:
        limits.importsDMABuffers =
          UInt32(bitPattern: value) & UInt32(VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2) != 0
      default: break
      }
    }
    if smallest.0 > 0, smallest.1 > 0 { limits.minimum = PictureSize(width: smallest.0, height: smallest.1) }
    if largest.0 > 0, largest.1 > 0 { limits.maximum = PictureSize(width: largest.0, height: largest.1) }
    limits.takesNV12 = formats.isEmpty || formats.contains(UInt32(VA_FOURCC_NV12))
    return limits
  }
}
