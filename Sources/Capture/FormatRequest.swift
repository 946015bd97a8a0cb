public import Media

/// What is asked of a camera.
public struct FormatRequest: Hashable, Sendable {
  /// The picture's size.
  public var size: PictureSize
  /// Whether a person chose the size: then no other will do. Otherwise the nearest is taken.
  public var isSizeExplicit: Bool
  /// Frames a second.
  public var frameRate: FrameRate
  /// Whether a person chose the rate: then no other will do. Otherwise the nearest is taken.
  public var isRateExplicit: Bool
  /// The pixel format to take from the device; nil takes the cheapest that reaches size and rate.
  public var format: PixelFormat?
  /// What is done about the frames' memory.
  public var memory = FrameMemory()

  /// What is asked for where nobody says anything.
  public static let defaultSize = PictureSize(width: 1280, height: 720)

  /// A request; a size or rate that is given here is explicit.
  public init(size: PictureSize? = nil, frameRate: FrameRate? = nil, format: PixelFormat? = nil) {
    self.size = size ?? Self.defaultSize
    self.isSizeExplicit = size != nil
    self.frameRate = frameRate ?? .thirty
    self.isRateExplicit = frameRate != nil
    self.format = format
  }
}
