import CLinux
import Glibc
import Media

/// The device's capabilities: `VIDIOC_ENUM_FMT`, `VIDIOC_ENUM_FRAMESIZES`, `VIDIOC_ENUM_FRAMEINTERVALS`.
extension V4L2Device {
  /// The largest number of entries read of any list. It cuts off a driver whose list never ends.
  private static let listLimit: UInt32 = 256

  /// Returns the device's formats. The rates of a grid of sizes are those at the size nearest to `wanted`.
  ///
  /// Sizes are read only for formats that are `relevant`: a driver may list thousands of rates.
  func capabilities(
    near wanted: PictureSize = FormatRequest.defaultSize, relevant: (PixelFormat) -> Bool = { _ in true }
  ) -> CameraCapabilities {
    var formats: [CameraFormat] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_fmtdesc()
      entry.index = index
      entry.type = bufferType
      guard control(nightjar_VIDIOC_ENUM_FMT, &entry) == 0 else { break }
      let format = PixelFormat(fourCC: entry.pixelformat)
      guard !formats.contains(where: { $0.pixelFormat == format }) else { continue }
      formats.append(
        CameraFormat(
          pixelFormat: format, name: DriverText.text(field: entry.description),
          sizes: relevant(format) ? sizes(of: format, near: wanted) : []))
    }
    return CameraCapabilities(formats: formats)
  }

  private func sizes(of format: PixelFormat, near wanted: PictureSize) -> [CameraSize] {
    var sizes: [CameraSize] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_frmsizeenum()
      entry.index = index
      entry.pixel_format = format.fourCC
      guard control(nightjar_VIDIOC_ENUM_FRAMESIZES, &entry) == 0 else { break }
      if entry.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue {
        let size = PictureSize(width: Int(entry.discrete.width), height: Int(entry.discrete.height))
        sizes.append(CameraSize(extent: .discrete(size), rates: rates(of: format, at: size)))
        continue
      }
      // A grid is the only entry of its list.
      if let grid = grid(of: format, entry.stepwise, near: wanted) { sizes.append(grid) }
      break
    }
    if sizes.isEmpty, let size = tried(format, near: wanted) {
      sizes.append(CameraSize(extent: .discrete(size), rates: rates(of: format, at: size)))
    }
    return sizes
  }

  private func grid(
    of format: PixelFormat, _ entry: v4l2_frmsize_stepwise, near wanted: PictureSize
  ) -> CameraSize? {
    // A step of 0 would be a single size.
    guard
      let widths = SteppedRange(
        minimum: Int(entry.min_width), maximum: Int(entry.max_width), step: max(1, Int(entry.step_width))),
      let heights = SteppedRange(
        minimum: Int(entry.min_height), maximum: Int(entry.max_height), step: max(1, Int(entry.step_height)))
    else { return nil }
    let extent = CameraSize.Extent.stepwise(widths: widths, heights: heights)
    let nearest = CameraSize(extent: extent, rates: .unknown).nearestEncodable(to: wanted)
    return CameraSize(extent: extent, rates: nearest.map { rates(of: format, at: $0) } ?? .unknown)
  }

  private func rates(of format: PixelFormat, at size: PictureSize) -> CameraRates {
    guard let width = UInt32(exactly: size.width), let height = UInt32(exactly: size.height) else { return .unknown }
    var listed: [FrameRate] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_frmivalenum()
      entry.index = index
      entry.pixel_format = format.fourCC
      entry.width = width
      entry.height = height
      guard control(nightjar_VIDIOC_ENUM_FRAMEINTERVALS, &entry) == 0 else { break }
      if entry.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue {
        if let rate = FrameRate(interval: entry.discrete) { listed.append(rate) }
        continue
      }
      guard let slowest = FrameRate(interval: entry.stepwise.max),
        let fastest = FrameRate(interval: entry.stepwise.min),
        slowest.framesPerSecond <= fastest.framesPerSecond
      else { break }
      return .range(slowest: slowest, fastest: fastest)
    }
    return listed.isEmpty ? .unknown : .listed(listed)
  }

  /// Returns the size that a driver without a list of sizes grants for `wanted`.
  private func tried(_ format: PixelFormat, near wanted: PictureSize) -> PictureSize? {
    var argument = DriverFormat.request(format, size: wanted, type: bufferType)
    guard control(nightjar_VIDIOC_TRY_FMT, &argument) == 0 else { return nil }
    let answer = DriverFormat(argument)
    return answer.pixelFormat == format ? answer.size : nil
  }
}

extension FrameRate {
  /// Creates the rate of a frame interval in seconds; nil if the driver's interval is invalid.
  init?(interval: v4l2_fract) {
    self.init(interval.denominator, interval.numerator)
  }
}
