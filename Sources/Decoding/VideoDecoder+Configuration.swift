import Media

extension VideoDecoder {
  /// The settings of a decoder.
  public struct Configuration: Hashable, Sendable {
    /// The choice between hardware and software.
    public enum Acceleration: Hashable, Sendable {
      /// Hardware where a driver opens and decodes the stream, software otherwise. Software also decodes pictures of several
      /// slices, because no driver tells that one of them is missing, up to the next new SPS. Hardware that failed is
      /// tried again.
      case automatic
      /// Software only.
      case software
      /// The driver of one render node, such as `/dev/dri/renderD128`. Opening fails where the node has no driver; a stream
      /// that the driver does not decode, and a driver that fails, still fall back to software.
      case renderNode(String)
    }

    /// The choice between hardware and software.
    public var acceleration: Acceleration
    /// The number of threads that decode the slices of one picture. More threads add no delay, and help only where
    /// pictures have several slices.
    public var threads: Int
    /// The largest sum of luma samples in a picture. It is checked before memory is taken.
    public var maximumPixels: Int
    /// The largest width and height of a picture.
    public var maximumSide: Int
    /// The largest access unit in bytes.
    public var maximumAccessUnitBytes: Int
    /// The number of decoded pictures that may exist at once, of all sizes together: those that subscribers hold, and those on
    /// their way. While all are held, decoded pictures are dropped, and counted. Their memory is preallocated; where sizes
    /// change, it is at most that of twice as many.
    public var poolCapacity: Int
    /// `true` keeps the driver's surface of each picture, for ``DecodedPicture/exportedSurface()``. Pictures that are held then hold
    /// surfaces too.
    public var keepsSurfaces: Bool

    /// Creates a configuration; see the properties. The default size limits are those of level 5.2: 4096x2304.
    public init(
      acceleration: Acceleration = .automatic, threads: Int = 1, maximumPixels: Int = 36_864 * 256,
      maximumSide: Int = 8192, maximumAccessUnitBytes: Int = 16 << 20, poolCapacity: Int = 8,
      keepsSurfaces: Bool = false
    ) {
      self.acceleration = acceleration
      self.threads = threads
      self.maximumPixels = maximumPixels
      self.maximumSide = maximumSide
      self.maximumAccessUnitBytes = maximumAccessUnitBytes
      self.poolCapacity = poolCapacity
      self.keepsSurfaces = keepsSurfaces
    }

    /// The allowed numbers of threads.
    public static let threadLimits = 1...16
    /// The allowed access unit limits, in bytes.
    public static let accessUnitLimits = 1024...AVCC.accessUnitLimit

    /// Checks every value.
    ///
    /// - Throws: ``DecoderError/configuration(_:)`` with the value and the limit.
    public func check() throws(DecoderError) {
      try Self.check(threads, in: Self.threadLimits, "a number of decoder threads")
      try Self.check(maximumSide, in: 16...PictureSize.limit, "a limit of a picture's side")
      try Self.check(maximumPixels, in: 256...PictureSize.limit * PictureSize.limit, "a limit of a picture's samples")
      try Self.check(maximumAccessUnitBytes, in: Self.accessUnitLimits, "a limit of an access unit's bytes")
      try Self.check(poolCapacity, in: 1...FramePool.capacityLimit, "a number of decoded pictures")
    }

    private static func check(_ value: Int, in limits: ClosedRange<Int>, _ name: String) throws(DecoderError) {
      guard !limits.contains(value) else { return }
      throw .configuration("\(name) of \(value): choose \(limits.lowerBound) to \(limits.upperBound)")
    }

    /// Checks a size that a stream announces.
    ///
    /// - Throws: ``DecoderError/pictureSize(_:limit:)``.
    func check(_ size: PictureSize) throws(DecoderError) {
      guard size.width <= maximumSide, size.height <= maximumSide else {
        throw .pictureSize(size, limit: "a side of at most \(maximumSide) samples is decoded")
      }
      guard size.pixels <= maximumPixels else {
        throw .pictureSize(size, limit: "at most \(maximumPixels) samples are decoded")
      }
    }
  }

  /// The decoder in use.
  public struct Selection: Hashable, Sendable, CustomStringConvertible {
    /// `true` if hardware decodes.
    public let isHardware: Bool
    /// The decoder's name for people: `libavcodec 59.37, 1 thread`.
    public let name: String
    /// The reason for the choice, for people.
    public let reason: String

    /// The name and the reason.
    public var description: String { "\(name) (\(reason))" }
  }

  /// Counts since the decoder was created.
  public struct Counts: Hashable, Sendable {
    /// The number of access units that ``VideoDecoder/decode(_:)`` took.
    public var accessUnits: UInt64 = 0
    /// The number of pictures that were delivered.
    public var pictures: UInt64 = 0
    /// The number of access units that were refused, and of decoded pictures that were not shown because of damage.
    public var refused: UInt64 = 0
    /// The number of decoded pictures that were dropped because subscribers held all others.
    public var dropped: UInt64 = 0
    /// The number of changes from hardware to software in mid-stream.
    public var fallbacks: UInt64 = 0

    /// Creates counts of zero.
    public init() {}
  }
}
