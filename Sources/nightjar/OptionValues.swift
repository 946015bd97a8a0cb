import ArgumentParser
import Media
import Streaming
import Threading

/// An option that is chosen, or left to the program.
enum Choice<Value: Sendable>: Sendable {
  case auto
  case chosen(Value)

  /// What was chosen, nil where nothing was.
  var value: Value? {
    if case .chosen(let value) = self { return value }
    return nil
  }
}

/// How the values of options are written.
enum OptionValues {
  /// `1280x720`.
  static func size(_ text: String) throws -> PictureSize {
    let parts = text.split(separator: "x", omittingEmptySubsequences: false)
    guard parts.count == 2, let width = number(parts[0]), let height = number(parts[1]) else {
      throw ValidationError("write it as WIDTHxHEIGHT, as in 1280x720")
    }
    let size = PictureSize(width: width, height: height)
    guard size.isEncodable else {
      let even = PictureSize(width: nearestEncodable(width), height: nearestEncodable(height))
      throw ValidationError(
        "width and height must be even, from 16 to \(PictureSize.limit); the nearest is \(even)")
    }
    return size
  }

  private static func nearestEncodable(_ value: Int) -> Int {
    min(PictureSize.limit, max(16, value / 2 * 2))
  }

  /// `30`, `29.97`, `30000/1001`.
  static func frameRate(_ text: String) throws -> FrameRate {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    if parts.count == 2, let numerator = number(parts[0]), let denominator = number(parts[1]),
      let rate = FrameRate(UInt32(numerator), UInt32(denominator)), (0.1...240).contains(rate.framesPerSecond)
    {
      return rate
    }
    if parts.count == 1, let value = decimal(parts[0]), (0.1...240).contains(value) {
      // 29.97, 23.976 and 59.94 stand for a multiple of 1000/1001.
      let ntsc = (value * 1.001).rounded()
      if abs(ntsc / 1.001 - value) < 0.005, abs(ntsc - value) > 0.005, let rate = FrameRate(UInt32(ntsc * 1000), 1001) {
        return rate
      }
      if let rate = FrameRate(UInt32((value * 1000).rounded()), 1000) { return rate }
    }
    throw ValidationError("choose 0.1 to 240 frames a second, as in 30, 29.97 or 30000/1001")
  }

  /// `rtp://HOST:PORT`, with options.
  static func destination(_ text: String) throws -> StreamDestination {
    do { return try StreamDestination(url: text) } catch { throw ValidationError("\(error)") }
  }

  /// `0.5`: a part of a frame interval.
  static func pacing(_ text: String) throws -> Double {
    guard let value = decimal(Substring(text)), (0...1).contains(value) else {
      throw ValidationError("choose 0 to 1, as in 0.5 for half a frame interval")
    }
    return value
  }

  /// `pool,gso`: names of optimizations.
  static func optimizations(_ text: String) throws -> Set<Optimization> {
    var optimizations: Set<Optimization> = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let optimization = Optimization(rawValue: String(name)) else {
        throw ValidationError("choose from \(Optimization.names), with commas between them")
      }
      optimizations.insert(optimization)
    }
    return optimizations
  }

  /// `auto`, `2.5M`, `800k`, `1500000`: bits a second.
  static func bitrate(_ text: String) throws -> Choice<Int> {
    if text == "auto" { return .auto }
    var digits = Substring(text)
    var unit = 1.0
    if let last = digits.last, let factor = ["k": 1e3, "K": 1e3, "M": 1e6][last] {
      unit = factor
      digits = digits.dropLast()
    }
    let limits = EncoderConfiguration.bitrateLimits
    guard let value = decimal(digits), (Double(limits.lowerBound)...Double(limits.upperBound)).contains(value * unit)
    else {
      throw ValidationError(
        "choose auto, or bits a second from \(limits.lowerBound / 1000)k to \(limits.upperBound / 1_000_000)M, "
          + "as in 2.5M or 800k")
    }
    return .chosen(Int((value * unit).rounded()))
  }

  /// `2s`, `500ms`, `1.5s`, `10m`, or seconds without a unit.
  static func duration(_ text: String, within limits: ClosedRange<Double>, example: String) throws -> MediaTime {
    var digits = Substring(text)
    var unit = 1.0
    for (suffix, seconds) in [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600)] where digits.hasSuffix(suffix) {
      digits = digits.dropLast(suffix.count)
      unit = seconds
      break
    }
    guard let value = decimal(digits), limits.contains(value * unit) else {
      throw ValidationError("choose \(limits.lowerBound) to \(limits.upperBound) seconds, as in \(example)")
    }
    return MediaTime(seconds: value * unit)
  }

  /// `500M`, `2G`, `1000000`: bytes.
  static func bytes(_ text: String, within limits: ClosedRange<Int>, example: String) throws -> Int {
    var digits = Substring(text)
    var unit = 1.0
    if let last = digits.last, let factor = ["k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12][last] {
      unit = factor
      digits = digits.dropLast()
    }
    guard let value = decimal(digits), (Double(limits.lowerBound)...Double(limits.upperBound)).contains(value * unit)
    else {
      throw ValidationError(
        "choose \(limits.lowerBound / 1_000_000)M to \(limits.upperBound / 1_000_000_000)G, as in \(example)")
    }
    return Int((value * unit).rounded())
  }

  /// `2,3`, `0-1`: processors that this program may run on.
  static func processors(_ text: String) throws -> ProcessorSet {
    guard let processors = ProcessorSet(text: text) else {
      throw ValidationError("write numbers and ranges of processors, as in 2,3 or 0-1")
    }
    // A kernel that does not tell will refuse it by itself.
    guard let there = ProcessorSet.ofThread() else { return processors }
    let missing = processors.numbers.filter { !there.numbers.contains($0) }
    guard let missing = ProcessorSet(missing) else { return processors }
    throw ValidationError("there is no processor \(missing) for this program: it may run on \(there)")
  }

  /// `auto` or a number.
  static func threads(_ text: String) throws -> Choice<Int> {
    if text == "auto" { return .auto }
    guard let count = number(text[...]), (1...16).contains(count) else {
      throw ValidationError("choose auto, or 1 to 16")
    }
    return .chosen(count)
  }

  /// `mtu`, or bytes.
  static func sliceSize(_ text: String) throws -> SliceSize {
    if text == "mtu" { return .packet }
    let limits = EncoderConfiguration.sliceBytesLimits
    guard let bytes = number(text[...]), limits.contains(bytes) else {
      throw ValidationError("choose mtu, or \(limits.lowerBound) to \(limits.upperBound) bytes")
    }
    return .bytes(bytes)
  }

  /// `auto` or a four-character code in any case, with the usual other names.
  static func pixelFormat(_ text: String) throws -> Choice<PixelFormat> {
    let upper = text.uppercased()
    if upper == "AUTO" { return .auto }
    let others: [String: PixelFormat] = [
      "MJPEG": .mjpeg, "YUY2": .yuyv, "I420": .yu12, "YUV420P": .yu12, "YUYV422": .yuyv,
    ]
    // The kernel's codes are upper case, but for a few that mix cases: those are taken as they stand.
    let isMixed = text != upper && text != text.lowercased()
    guard let format = others[upper] ?? PixelFormat(isMixed ? text : upper) else {
      throw ValidationError("choose auto, or a four-character code as `nightjar devices` lists them")
    }
    return .chosen(format)
  }

  /// `nursery`: what a URL takes as it is.
  static func cameraName(_ text: String) throws -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || [0x2d, 0x2e, 0x5f].contains(byte)
    }
    guard isPlain, (1...64).contains(text.utf8.count), text != ".", text != ".." else {
      throw ValidationError("choose 1 to 64 letters, digits, '-', '_' and '.', as in nursery")
    }
    return text
  }

  /// A whole number of these.
  static func number(_ text: String, within limits: ClosedRange<Int>) throws -> Int {
    guard let value = number(text[...]), limits.contains(value) else {
      throw ValidationError("choose \(limits.lowerBound) to \(limits.upperBound)")
    }
    return value
  }

  /// Up to nine digits and nothing else.
  static func number(_ text: Substring) -> Int? {
    guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }

  /// Digits with at most one point: no sign, exponent, infinity.
  static func decimal(_ text: Substring) -> Double? {
    let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2e }
    guard (1...12).contains(text.utf8.count), isPlain else { return nil }
    return Double(text)
  }
}

extension Optimization {
  /// All of them.
  static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
