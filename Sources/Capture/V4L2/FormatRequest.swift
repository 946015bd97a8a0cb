public import Media

/// The settings requested from a camera.
public struct FormatRequest: Hashable, Sendable {
  /// The picture's size.
  public var size: PictureSize
  /// `true` if the user chose the size: then no other size will do. `false` takes the nearest one.
  public var isSizeExplicit: Bool
  /// The frame rate.
  public var frameRate: FrameRate
  /// `true` if the user chose the rate: then no other rate will do. `false` takes the nearest one.
  public var isRateExplicit: Bool
  /// The device's pixel format; nil takes the cheapest one that reaches size and rate.
  public var format: PixelFormat?
  /// `true` takes the camera's own H.264, for an encoder that passes coded pictures on. Then ``format`` does not count.
  package var takesH264 = false
  /// The handling of the frames' memory.
  public var memory = FrameMemory()

  /// The size that is requested if the user gives none.
  public static let defaultSize = PictureSize(width: 1280, height: 720)

  /// Creates a request. A size or rate given here is explicit.
  public init(size: PictureSize? = nil, frameRate: FrameRate? = nil, format: PixelFormat? = nil) {
    self.size = size ?? Self.defaultSize
    self.isSizeExplicit = size != nil
    self.frameRate = frameRate ?? .thirty
    self.isRateExplicit = frameRate != nil
    self.format = format
  }
}
