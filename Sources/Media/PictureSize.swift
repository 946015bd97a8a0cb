/// Width and height of a picture in luma samples.
public struct PictureSize: Hashable, Sendable, CustomStringConvertible {
  /// Luma samples in a row.
  public let width: Int
  /// Rows of luma.
  public let height: Int

  /// The largest width or height that is taken: H.264 level 6.2 ends at 16,384 by way of
  /// `MaxFS` (ITU-T H.264 table A-1).
  public static let limit = 16_384

  /// `width` × `height`, unchecked: see ``isEncodable``.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Whether 4:2:0 H.264 can carry it: even, at least 16 each way, at most ``limit``.
  public var isEncodable: Bool {
    width.isMultiple(of: 2) && height.isMultiple(of: 2)
      && (16...Self.limit).contains(width) && (16...Self.limit).contains(height)
  }

  /// Luma samples in a picture.
  public var pixels: Int { width * height }

  /// `1280x720`.
  public var description: String { "\(width)x\(height)" }
}
