public import Media

/// The values from `minimum` to `maximum` in steps, as drivers with a scaler give widths and heights.
public struct SteppedRange: Hashable, Sendable {
  /// The smallest.
  public let minimum: Int
  /// The largest.
  public let maximum: Int
  /// From one to the next; 1 where the driver calls the range continuous.
  public let step: Int

  /// A range; nil where it is empty or the step is not positive.
  public init?(minimum: Int, maximum: Int, step: Int) {
    guard minimum > 0, minimum <= maximum, step > 0 else { return nil }
    self.minimum = minimum
    self.maximum = maximum
    self.step = step
  }

  /// The even value nearest to `wanted`, at least 16 and at most ``/Media/PictureSize/limit``; nil where there is none.
  public func nearestEven(to wanted: Int) -> Int? {
    let lowest = max(minimum, 16)
    let highest = min(maximum, PictureSize.limit)
    guard lowest <= highest else { return nil }
    let clamped = min(max(wanted, lowest), highest)
    let index = (clamped - minimum) / step
    var best: Int?
    // Of any three neighbours in steps of the range one on each side is even, if any is.
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
  /// The driver does not tell.
  case unknown
  /// These and no others; never empty.
  case listed([FrameRate])
  /// Anything between.
  case range(slowest: FrameRate, fastest: FrameRate)
}

/// A size, or a range of them, that a camera offers in one pixel format.
public struct CameraSize: Hashable, Sendable {
  /// One size, or all of a range.
  public enum Extent: Hashable, Sendable {
    /// One size.
    case discrete(PictureSize)
    /// Every width together with every height of these ranges.
    case stepwise(widths: SteppedRange, heights: SteppedRange)
  }

  /// The size, or the range of sizes.
  public let extent: Extent
  /// The rates at that size. For a grid: at the size of it that was asked about.
  public let rates: CameraRates

  /// A size and its rates.
  public init(extent: Extent, rates: CameraRates) {
    self.extent = extent
    self.rates = rates
  }

  /// The size nearest to `wanted` that H.264 can carry; nil where there is none.
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
  /// The format by its V4L2 code.
  public let pixelFormat: PixelFormat
  /// The driver's name for it.
  public let name: String
  /// The sizes that the camera has in this format.
  public let sizes: [CameraSize]

  /// A format.
  public init(pixelFormat: PixelFormat, name: String, sizes: [CameraSize]) {
    self.pixelFormat = pixelFormat
    self.name = name
    self.sizes = sizes
  }
}

/// Everything that a camera says it can do.
public struct CameraCapabilities: Hashable, Sendable {
  /// Its formats in the driver's order.
  public let formats: [CameraFormat]

  /// The capabilities of a camera with these formats.
  public init(formats: [CameraFormat]) {
    self.formats = formats
  }

  /// Whether it offers pictures, but only such as a video decoder opens.
  public var isInterFrameCodedOnly: Bool {
    !formats.isEmpty && formats.allSatisfy(\.pixelFormat.isInterFrameCoded)
  }
}
