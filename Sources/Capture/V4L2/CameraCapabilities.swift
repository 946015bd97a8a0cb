public import Media

/// The values from `minimum` to `maximum` in steps. Drivers with a scaler describe widths and heights in this way.
public struct SteppedRange: Hashable, Sendable {
  /// The smallest value.
  public let minimum: Int
  /// The largest value.
  public let maximum: Int
  /// The difference between two values; 1 if the driver calls the range continuous.
  public let step: Int

  /// Creates a range; nil if it is empty or the step is not positive.
  public init?(minimum: Int, maximum: Int, step: Int) {
    guard minimum > 0, minimum <= maximum, step > 0 else { return nil }
    self.minimum = minimum
    self.maximum = maximum
    self.step = step
  }

  /// Returns the even value nearest to `wanted`, at least 16 and at most ``/Media/PictureSize/limit``; nil if there is
  /// none.
  public func nearestEven(to wanted: Int) -> Int? {
    let lowest = max(minimum, 16)
    let highest = min(maximum, PictureSize.limit)
    guard lowest <= highest else { return nil }
    let clamped = min(max(wanted, lowest), highest)
    let index = (clamped - minimum) / step
    var best: Int?
    // Of any three neighbours in the range, one on each side is even, if any is.
    for candidate in max(0, index - 2)...(index + 3) {
      let value = minimum + candidate * step
      guard value.isMultiple(of: 2), (lowest...highest).contains(value) else { continue }
      if let current = best, abs(current - wanted) <= abs(value - wanted) { continue }
      best = value
    }
    return best
  }
}

/// The frame rates of a camera at one size.
public enum CameraRates: Hashable, Sendable {
  /// The driver reports no rates.
  case unknown
  /// The only possible rates; never empty.
  case listed([FrameRate])
  /// Any rate in the range.
  case range(slowest: FrameRate, fastest: FrameRate)
}

/// A size, or a range of sizes, that a camera offers in one pixel format.
public struct CameraSize: Hashable, Sendable {
  /// One size or a range of sizes.
  public enum Extent: Hashable, Sendable {
    /// One size.
    case discrete(PictureSize)
    /// Every width of a range combined with every height of a range.
    case stepwise(widths: SteppedRange, heights: SteppedRange)
  }

  /// The size, or the range of sizes.
  public let extent: Extent
  /// The rates at that size. For a grid, the rates at the requested size.
  public let rates: CameraRates

  /// Creates a size with its rates.
  public init(extent: Extent, rates: CameraRates) {
    self.extent = extent
    self.rates = rates
  }

  /// Returns the size nearest to `wanted` that H.264 can carry; nil if there is none.
  public func nearestEncodable(to wanted: PictureSize) -> PictureSize? {
    switch extent {
    case .discrete(let size):
      return size.isEncodable ? size : nil
    case .stepwise(let widths, let heights):
      guard let width = widths.nearestEven(to: wanted.width), let height = heights.nearestEven(to: wanted.height)
      else { return nil }
      return PictureSize(width: width, height: height)
    }
  }
}

/// A pixel format that a camera offers.
public struct CameraFormat: Hashable, Sendable {
  /// The format, by its V4L2 code.
  public let pixelFormat: PixelFormat
  /// The driver's name of the format.
  public let name: String
  /// The sizes that the camera has in this format.
  public let sizes: [CameraSize]

  /// Creates a format.
  public init(pixelFormat: PixelFormat, name: String, sizes: [CameraSize]) {
    self.pixelFormat = pixelFormat
    self.name = name
    self.sizes = sizes
  }
}

/// The capabilities that a camera reports.
public struct CameraCapabilities: Hashable, Sendable {
  /// The formats, in the driver's order.
  public let formats: [CameraFormat]

  /// Creates the capabilities of a camera with these formats.
  public init(formats: [CameraFormat]) {
    self.formats = formats
  }

  /// `true` if the camera offers pictures, but only such as need a video decoder.
  public var isInterFrameCodedOnly: Bool {
    !formats.isEmpty && formats.allSatisfy(\.pixelFormat.isInterFrameCoded)
  }
}
