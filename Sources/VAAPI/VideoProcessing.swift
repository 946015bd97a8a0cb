import CVA
import Media

/// The driver's video processing (`VAEntrypointVideoProc`), which rotates and mirrors one NV12 surface into another.
final class VideoProcessing {
  /// A rotation and a mirror in libva's values.
  struct Step: Hashable {
    /// `VA_ROTATION_*`, clockwise.
    var rotation: UInt32
    /// `VA_MIRROR_*`.
    var mirror: UInt32
  }

  private let display: VADisplayConnection
  private let config: VAConfigID
  private let context: VAContextID
  private let capabilities: VAProcPipelineCaps
  // libva takes addresses that must stay valid until the picture is ended.
  private let parameters: UnsafeMutablePointer<VAProcPipelineParameterBuffer>
  /// The regions of the source and of the target.
  private let regions: UnsafeMutablePointer<VARectangle>

  /// Opens the video processing for pictures written to surfaces of `targets`.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  init(_ display: VADisplayConnection, targets: VASurfaces) throws(EncoderError) {
    var config = VAConfigID(VA_INVALID_ID)
    try check(
      vaCreateConfig(display.handle, VAProfileNone, VAEntrypointVideoProc, nil, 0, &config), "vaCreateConfig")
    var context = VAContextID(VA_INVALID_ID)
    var surfaces = targets.identifiers
    let status = vaCreateContext(
      display.handle, config, CInt(targets.size.width), CInt(targets.size.height), VA_PROGRESSIVE, &surfaces,
      CInt(surfaces.count), &context)
    guard status == VA_STATUS_SUCCESS else {
      vaDestroyConfig(display.handle, config)
      throw failure(status, "vaCreateContext")
    }
    var capabilities = VAProcPipelineCaps()
    let answer = vaQueryVideoProcPipelineCaps(display.handle, context, nil, 0, &capabilities)
    guard answer == VA_STATUS_SUCCESS else {
      vaDestroyContext(display.handle, context)
      vaDestroyConfig(display.handle, config)
      throw failure(answer, "vaQueryVideoProcPipelineCaps")
    }
    self.display = display
    self.config = config
    self.context = context
    self.capabilities = capabilities
    parameters = .allocate(capacity: 1)
    parameters.initialize(to: VAProcPipelineParameterBuffer())
    regions = .allocate(capacity: 2)
    regions.initialize(repeating: VARectangle(), count: 2)
    parameters.pointee.surface_region = UnsafePointer(regions)
    parameters.pointee.output_region = UnsafePointer(regions + 1)
  }

  deinit {
    vaDestroyContext(display.handle, context)
    vaDestroyConfig(display.handle, config)
    parameters.deallocate()
    regions.deallocate()
  }

  /// Returns `true` if the driver lists `step`.
  func offers(_ step: Step) -> Bool {
    (step.rotation == UInt32(VA_ROTATION_NONE) || capabilities.rotation_flags & (1 << step.rotation) != 0)
      && (step.mirror == UInt32(VA_MIRROR_NONE) || capabilities.mirror_flags & step.mirror != 0)
  }

  /// Returns `true` if the driver states no limit that excludes pictures of `size`.
  func takes(_ size: PictureSize) -> Bool {
    func fits(_ length: Int, _ most: UInt32) -> Bool { most == 0 || length <= Int(most) }
    return fits(size.width, capabilities.max_input_width) && fits(size.height, capabilities.max_input_height)
  }

  /// Rotates the picture in the corner of `source`, of size `size`, by `step` into the corner of `target`, where it has
  /// `targetSize`. The method waits for the result, so a later reader of `target` sees no failure of this step.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``. The picture is ended in that case too.
  func process(
    _ source: VASurfaceID, _ size: PictureSize, into target: VASurfaceID, _ targetSize: PictureSize, by step: Step
  ) throws(EncoderError) {
    regions[0] = VARectangle(x: 0, y: 0, width: UInt16(size.width), height: UInt16(size.height))
    regions[1] = VARectangle(x: 0, y: 0, width: UInt16(targetSize.width), height: UInt16(targetSize.height))
    parameters.pointee.surface = source
    parameters.pointee.rotation_state = step.rotation
    parameters.pointee.mirror_state = step.mirror
    var buffer = VABufferID(VA_INVALID_ID)
    try check(
      vaCreateBuffer(
        display.handle, context, VAProcPipelineParameterBufferType,
        UInt32(MemoryLayout<VAProcPipelineParameterBuffer>.size), 1, parameters, &buffer), "vaCreateBuffer")
    defer { vaDestroyBuffer(display.handle, buffer) }
    try check(vaBeginPicture(display.handle, context, target), "vaBeginPicture (video processing)")
    let rendered = vaRenderPicture(display.handle, context, &buffer, 1)
    let ended = vaEndPicture(display.handle, context)
    try check(rendered, "vaRenderPicture (video processing)")
    try check(ended, "vaEndPicture (video processing)")
    try check(vaSyncSurface(display.handle, target), "vaSyncSurface (video processing)")
  }
}
