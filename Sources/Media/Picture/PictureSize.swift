/// Width and height of a picture in luma samples.
public struct PictureSize: Hashable, Sendable, CustomStringConvertible {
  /// Luma samples in a row.
  public let width: Int
  /// Rows of luma.
  public let height: Int

  /// The limit of width and height: H.264 level 6.2 ends at 16,384 by its `MaxFS` (ITU-T H.264 table A-1).
  public static let limit = 16_384

  /// Creates the size `width` × `height`, unchecked: see ``isEncodable``.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// `true` if 4:2:0 H.264 can carry the size: even, at least 16 each way, at most ``limit``.
  public var isEncodable: Bool {
    width.isMultiple(of: 2) && height.isMultiple(of: 2)
      && (16...Self.limit).contains(width) && (16...Self.limit).contains(height)
  }

  /// The number of luma samples in a picture.
  public var pixels: Int { width * height }

  /// The size as text: `1280x720`.
  public var description: String { "\(width)x\(height)" }
}
