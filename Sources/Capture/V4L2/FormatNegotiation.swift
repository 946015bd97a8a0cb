package import Media
import PixelConversion

/// Says how the device's pictures become NV12.
enum ConversionPath: Hashable, Sendable {
  /// The pictures are NV12: the encoder reads the driver's buffer.
  case none
  /// The pixel converter converts the pictures.
  case converter
  /// libv4lconvert converts the pictures to 4:2:0 first.
  case legacy
  /// The camera codes the pictures, and nothing here decodes them.
  case passThrough

  /// Returns the cheapest path for a format; nil if there is none.
  static func of(_ format: PixelFormat) -> ConversionPath? {
    if format == .nv12 || format == .nm12 { return ConversionPath.none }
    if PixelConverter.supports(format) { return .converter }
    return LegacyFormat.of(format) == nil ? nil : .legacy
  }
}

/// The settings to request from the driver.
package struct FormatChoice: Hashable, Sendable {
  /// The device's pixel format.
  package let format: PixelFormat
  /// The picture's size.
  package let size: PictureSize
  /// The rate to request.
  package let frameRate: FrameRate
  /// The path from the pictures to NV12.
  let path: ConversionPath
}

/// Chooses the camera's format, size and rate that serve a request best: a pure function of both.
package enum FormatNegotiation {
  /// Returns the best choice.
  ///
  /// Among the formats that can be opened, the order is: the requested or nearest size, then the requested or nearest
  /// rate, then the cheapest format.
  ///
  /// - Throws: ``CaptureError`` if an explicit request cannot be met; the error names the nearest possible value.
  package static func choose(
    _ request: FormatRequest, from capabilities: CameraCapabilities
  ) throws(CaptureError) -> FormatChoice {
    let candidates = try candidates(request, from: capabilities)
    var best: Candidate?
    for candidate in candidates where !request.isSizeExplicit || candidate.choice.size == request.size {
      // A size that does not reach an explicit rate is no candidate.
      if request.isRateExplicit, !candidate.choice.frameRate.isSame(as: request.frameRate) { continue }
      if let current = best, !candidate.isBetter(than: current) { continue }
      best = candidate
    }
    if let best { return best.choice }
    throw impossible(request, candidates: candidates)
  }

  /// Returns the cost of converting a picture of that format to NV12; lower is cheaper.
  static func cost(of format: PixelFormat) -> Int {
    switch format {
    case .nv12, .nm12: 0
    case .yu12, .ym12, .nv21, .nm21, .yv12, .ym21: 10
    case .yuyv, .uyvy: 20
    case .mjpeg, .jpeg: 30
    default:
      // Grey has no colour: only if the camera offers nothing else.
      if let legacy = LegacyFormat.of(format) {
        (legacy.isGrey ? 200 : PixelConverter.supports(format) ? 20 : 100) + legacy.cost
      } else {
        150
      }
    }
  }

  /// A choice and its distance from the request.
  private struct Candidate {
    let choice: FormatChoice
    let sizeDistance: Int
    let rateDistance: Double
    let cost: Int

    func isBetter(than other: Candidate) -> Bool {
      if sizeDistance != other.sizeDistance { return sizeDistance < other.sizeDistance }
      // The larger of two equally far sizes.
      if choice.size != other.choice.size { return choice.size.pixels > other.choice.size.pixels }
      if rateDistance != other.rateDistance { return rateDistance < other.rateDistance }
      return cost < other.cost
    }
  }

  private static func candidates(
    _ request: FormatRequest, from capabilities: CameraCapabilities
  ) throws(CaptureError) -> [Candidate] {
    guard request.size.isEncodable else { throw .sizeNotEncodable(request.size) }
    let offered = capabilities.formats.map(\.pixelFormat)
    guard !offered.isEmpty else { throw .noFormats }
    var formats = capabilities.formats.filter { ConversionPath.of($0.pixelFormat) != nil }
    if request.takesH264 {
      formats = capabilities.formats.filter { $0.pixelFormat == .h264 }
      guard !formats.isEmpty else { throw .formatNotOffered(.h264, offered: offered) }
    } else if let wanted = request.format {
      guard offered.contains(wanted) else { throw .formatNotOffered(wanted, offered: offered) }
      guard !wanted.isInterFrameCoded else {
        let others = formats.map(\.pixelFormat).filter { !$0.isInterFrameCoded }
        throw others.isEmpty ? .interFrameCoded(offered) : .formatInterFrameCoded(wanted, others: others)
      }
      formats = formats.filter { $0.pixelFormat == wanted }
      guard !formats.isEmpty else { throw .formatNotReadable([wanted]) }
    }
    guard !formats.isEmpty else {
      if capabilities.isInterFrameCodedOnly { throw .interFrameCoded(offered) }
      throw .formatNotReadable(offered)
    }
    var candidates: [Candidate] = []
    for format in formats {
      guard let path = request.takesH264 ? .passThrough : ConversionPath.of(format.pixelFormat) else { continue }
      for offer in format.sizes {
        guard let size = offer.nearestEncodable(to: request.size) else { continue }
        let rate = offer.rates.nearest(to: request.frameRate)
        candidates.append(
          Candidate(
            choice: FormatChoice(format: format.pixelFormat, size: size, frameRate: rate, path: path),
            sizeDistance: distance(size, request.size),
            rateDistance: rate.isSame(as: request.frameRate)
              ? 0 : abs(rate.framesPerSecond - request.frameRate.framesPerSecond),
            cost: cost(of: format.pixelFormat)))
      }
    }
    guard !candidates.isEmpty else { throw .noUsableSize }
    return candidates
  }

  /// Returns the reason why no candidate fits, with the nearest existing one.
  private static func impossible(_ request: FormatRequest, candidates: [Candidate]) -> CaptureError {
    let ofSize = candidates.filter { $0.choice.size == request.size }
    if request.isSizeExplicit, ofSize.isEmpty,
      let nearest = candidates.min(by: { $0.isBetter(than: $1) })
    {
      return .sizeNotOffered(request.size, nearest: nearest.choice.size, format: request.format)
    }
    let pool = request.isSizeExplicit ? ofSize : candidates
    guard let nearest = pool.min(by: { $0.rateDistance < $1.rateDistance }) else { return .noUsableSize }
    return .rateNotOffered(
      request.frameRate, nearest: nearest.choice.frameRate, size: nearest.choice.size, format: request.format)
  }

  private static func distance(_ left: PictureSize, _ right: PictureSize) -> Int {
    let (x, y) = (left.width - right.width, left.height - right.height)
    return x * x + y * y
  }
}

extension FrameRate {
  /// Returns `true` if both rates look the same to a viewer: within half a per cent. So 30 equals 30000/1001, and also
  /// the value that a driver computes for 30 in units of 100 ns.
  func isSame(as other: FrameRate) -> Bool {
    abs(framesPerSecond - other.framesPerSecond) <= other.framesPerSecond * 0.005
  }
}

extension CameraRates {
  /// Returns the rate to request if `wanted` is requested.
  package func nearest(to wanted: FrameRate) -> FrameRate {
    switch self {
    case .unknown:
      return wanted
    case .range(let slowest, let fastest):
      if wanted.framesPerSecond < slowest.framesPerSecond { return slowest }
      return wanted.framesPerSecond > fastest.framesPerSecond ? fastest : wanted
    case .listed(let rates):
      var best = rates.first ?? wanted
      for rate in rates.dropFirst() {
        let (new, old) = (wanted.gap(to: rate), wanted.gap(to: best))
        // The faster of two equally far rates.
        if new < old || (new == old && rate.framesPerSecond > best.framesPerSecond) { best = rate }
      }
      return best
    }
  }
}

extension FrameRate {
  fileprivate func gap(to other: FrameRate) -> Double { abs(framesPerSecond - other.framesPerSecond) }
}
