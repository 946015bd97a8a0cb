package import Capture
import Encoding
import Host
import Media
import Platform
import SRTP
import Serving
package import Streaming

/// The parsers of the settings' values.
package enum SettingValues {
  /// Parses `1280x720`.
  static func size(_ text: String) throws(ValueError) -> PictureSize {
    let parts = text.split(separator: "x", omittingEmptySubsequences: false)
    guard parts.count == 2, let width = number(parts[0]), let height = number(parts[1]) else {
      throw ValueError("write it as WIDTHxHEIGHT, as in 1280x720")
    }
    let size = PictureSize(width: width, height: height)
    guard size.isEncodable else {
      let even = PictureSize(width: nearestEncodable(width), height: nearestEncodable(height))
      throw ValueError(
        "width and height must be even, from 16 to \(PictureSize.limit); the nearest is \(even)")
    }
    return size
  }

  private static func nearestEncodable(_ value: Int) -> Int {
    min(PictureSize.limit, max(16, value / 2 * 2))
  }

  /// Parses `30`, `29.97`, `30000/1001`.
  static func frameRate(_ text: String) throws(ValueError) -> FrameRate {
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
    throw ValueError("choose 0.1 to 240 frames a second, as in 30, 29.97 or 30000/1001")
  }

  /// Parses `rtp://HOST:PORT`, with options.
  package static func destination(_ text: String) throws(ValueError) -> StreamDestination {
    do { return try StreamDestination(url: text) } catch { throw ValueError("\("\(error)")") }
  }

  /// Parses `0.5`: a part of a frame interval.
  static func pacing(_ text: String) throws(ValueError) -> Double {
    guard let value = decimal(Substring(text)), (0...1).contains(value) else {
      throw ValueError("choose 0 to 1, as in 0.5 for half a frame interval")
    }
    return value
  }

  /// Parses `pool,gso`: names of optimizations.
  static func optimizations(_ text: String) throws(ValueError) -> Set<Optimization> {
    var optimizations: Set<Optimization> = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let optimization = Optimization(rawValue: String(name)) else {
        throw ValueError("choose from \(Optimization.names), with commas between them")
      }
      optimizations.insert(optimization)
    }
    return optimizations
  }

  /// Parses `auto`, `2.5M`, `800k`, `1500000`: bits per second.
  package static func bitrate(_ text: String) throws(ValueError) -> Int? {
    if text == "auto" { return .none }
    var digits = Substring(text)
    var unit = 1.0
    if let last = digits.last, let factor = ["k": 1e3, "K": 1e3, "M": 1e6][last] {
      unit = factor
      digits = digits.dropLast()
    }
    let limits = EncoderConfiguration.bitrateLimits
    guard let value = decimal(digits), (Double(limits.lowerBound)...Double(limits.upperBound)).contains(value * unit)
    else {
      throw ValueError(
        """
        choose auto, or bits a second from \(limits.lowerBound / 1000)k to \(limits.upperBound / 1_000_000)M, \
        as in 2.5M or 800k
        """)
    }
    return .some(Int((value * unit).rounded()))
  }

  /// Parses `2s`, `500ms`, `1.5s`, `10m`, or seconds without a unit.
  static func duration(_ text: String, within limits: ClosedRange<Double>, example: String) throws(ValueError)
    -> Duration
  {
    var digits = Substring(text)
    var unit = 1.0
    for (suffix, seconds) in [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600)] where digits.hasSuffix(suffix) {
      digits = digits.dropLast(suffix.count)
      unit = seconds
      break
    }
    guard let value = decimal(digits), limits.contains(value * unit) else {
      throw ValueError("choose \(limits.lowerBound) to \(limits.upperBound) seconds, as in \(example)")
    }
    return Duration(seconds: value * unit)
  }

  /// Parses `500M`, `2G`, `1000000`: bytes.
  static func bytes(_ text: String, within limits: ClosedRange<Int>, example: String) throws(ValueError) -> Int {
    var digits = Substring(text)
    var unit = 1.0
    if let last = digits.last, let factor = ["k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12][last] {
      unit = factor
      digits = digits.dropLast()
    }
    guard let value = decimal(digits), (Double(limits.lowerBound)...Double(limits.upperBound)).contains(value * unit)
    else {
      throw ValueError(
        "choose \(limits.lowerBound / 1_000_000)M to \(limits.upperBound / 1_000_000_000)G, as in \(example)")
    }
    return Int((value * unit).rounded())
  }

  /// Parses `2,3`, `0-1`: processors that this program may use.
  static func processors(_ text: String) throws(ValueError) -> ProcessorSet {
    guard let processors = ProcessorSet(text: text) else {
      throw ValueError("write numbers and ranges of processors, as in 2,3 or 0-1")
    }
    // A kernel that does not tell the processors refuses a wrong choice by itself.
    guard let there = ProcessorSet.ofThread() else { return processors }
    let missing = processors.numbers.filter { !there.numbers.contains($0) }
    guard let missing = ProcessorSet(missing) else { return processors }
    throw ValueError("there is no processor \(missing) for this program: it may run on \(there)")
  }

  /// Parses `auto` or a number.
  static func threads(_ text: String) throws(ValueError) -> Int? {
    if text == "auto" { return .none }
    guard let count = number(text[...]), (1...16).contains(count) else {
      throw ValueError("choose auto, or 1 to 16")
    }
    return .some(count)
  }

  /// Parses `mtu`, or bytes.
  static func sliceSize(_ text: String) throws(ValueError) -> CameraEncoding.SliceSize? {
    if text == "mtu" { return .packet }
    let limits = EncoderConfiguration.sliceBytesLimits
    guard let bytes = number(text[...]), limits.contains(bytes) else {
      throw ValueError("choose mtu, or \(limits.lowerBound) to \(limits.upperBound) bytes")
    }
    return .bytes(bytes)
  }

  /// Parses `auto` or a four-character code in any case, with the usual other names.
  static func pixelFormat(_ text: String) throws(ValueError) -> PixelFormat? {
    let upper = text.uppercased()
    if upper == "AUTO" { return .none }
    let others: [String: PixelFormat] = [
      "MJPEG": .mjpeg, "YUY2": .yuyv, "I420": .yu12, "YUV420P": .yu12, "YUYV422": .yuyv,
    ]
    // The kernel's codes are upper case, except a few with mixed case: those are taken as they stand.
    let isMixed = text != upper && text != text.lowercased()
    guard let format = others[upper] ?? PixelFormat(isMixed ? text : upper) else {
      throw ValueError("choose auto, or a four-character code as `nightjar devices` lists them")
    }
    return .some(format)
  }

  /// Parses `nursery`: a name that a URL can contain unescaped.
  static func cameraName(_ text: String) throws(ValueError) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || [0x2d, 0x2e, 0x5f].contains(byte)
    }
    guard isPlain, (1...64).contains(text.utf8.count), text != ".", text != ".." else {
      throw ValueError("choose 1 to 64 letters, digits, '-', '_' and '.', as in nursery")
    }
    return text
  }

  /// Parses an integer within `limits`.
  static func number(_ text: String, within limits: ClosedRange<Int>) throws(ValueError) -> Int {
    guard let value = number(text[...]), limits.contains(value) else {
      throw ValueError("choose \(limits.lowerBound) to \(limits.upperBound)")
    }
    return value
  }

  /// Parses up to nine digits and nothing else.
  package static func number(_ text: Substring) -> Int? {
    guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }

  /// Parses digits with at most one point: no sign, exponent, infinity.
  static func decimal(_ text: Substring) -> Double? {
    let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2e }
    guard (1...12).contains(text.utf8.count), isPlain else { return nil }
    return Double(text)
  }

  /// Parses `brightness=10`.
  package static func assignment(_ text: String) throws(ValueError) -> ControlAssignment {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let isName = parts[0].utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    guard parts.count == 2, isName, (1...64).contains(parts[0].utf8.count), (1...128).contains(parts[1].utf8.count)
    else { throw ValueError("write NAME=VALUE, as in brightness=10") }
    return ControlAssignment(name: String(parts[0]), value: String(parts[1]))
  }

  /// Parses one of the values of an enumeration.
  static func choice<Value: RawRepresentable<String> & CaseIterable>(_ text: String) throws(ValueError) -> Value {
    if let value = Value(rawValue: text) { return value }
    let names = Value.allCases.map { "'\($0.rawValue)'" }
    throw ValueError("choose one of \(names.dropLast().joined(separator: ", ")) or \(names.last ?? "")")
  }

  /// Parses one of the values of an enumeration, for a property that may have none.
  static func choice<Value: RawRepresentable<String> & CaseIterable>(_ text: String) throws(ValueError) -> Value? {
    let value: Value = try choice(text)
    return value
  }

  /// Parses `realtime` or `max`.
  static func clipPacing(_ text: String) throws(ValueError) -> Y4MFile.Pacing? {
    switch text {
    case "realtime": .realtime
    case "max": .maximum
    default: throw ValueError("choose realtime or max")
    }
  }

  /// Parses the name of one of the presets of x264 and x265, or `auto`.
  static func x264Preset(_ text: String) throws(ValueError) -> CameraEncoding.SoftwarePreset? {
    let presets = EncoderSelector.x264Presets
    guard !presets.isEmpty else { throw ValueError("this build has neither x264 nor x265") }
    if text == "auto" { return .auto }
    guard presets.contains(text) else { throw ValueError("choose auto, \(presets.joined(separator: ", "))") }
    return .named(text)
  }

  /// Parses `auto`, or a quality level of VA-API.
  static func vaapiQuality(_ text: String) throws(ValueError) -> CameraEncoding.HardwareQuality? {
    if text == "auto" { return .auto }
    guard let level = number(text[...]), (1...65_535).contains(level) else {
      throw ValueError("choose auto, or 1 (best) to 65535; the driver's last level is the fastest")
    }
    return .level(level)
  }

  /// Parses `50` or `50%`: the part of the host's processors.
  static func processorShare(_ text: String) throws(ValueError) -> Double {
    guard let percent = decimal(text.hasSuffix("%") ? text.dropLast() : Substring(text)), (1...100).contains(percent)
    else { throw ValueError("choose 1% to 100% of the host's processors together, as in 50%") }
    return percent / 100
  }

  /// Parses `Front door`: text that other hosts show to people.
  static func announcedName(_ text: String) throws(ValueError) -> String? {
    let limit = ServiceAnnouncement.nameLimit
    guard text.utf8.count <= limit, text.unicodeScalars.allSatisfy(TerminalText.isHarmless) else {
      throw ValueError("write 1 to \(limit) bytes of text without control characters, as in 'Front door'")
    }
    return text
  }

  /// Parses the name of an SRTP suite, or `none`.
  static func suite(_ text: String) throws(ValueError) -> RTSPSettings.OfferedSuite? {
    if text == "none" { return RTSPSettings.OfferedSuite(suite: nil) }
    guard let suite = SRTPSuite(rawValue: text) else {
      throw ValueError("choose \(SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ")) or none")
    }
    return RTSPSettings.OfferedSuite(suite: suite)
  }

  /// Parses `239.1.2.3:5004`: a multicast group and the first of its four ports, which is even.
  static func group(_ text: String) throws(ValueError) -> RTSPServerConfiguration.Group? {
    // The rule of a group is told instead of the rule of the part that is wrong.
    guard let given = try? ListenAddress(parsing: text), let address = given.address, let port = given.port,
      port <= 65_532, port.isMultiple(of: 2), let resolved = try? SocketAddress(host: address, port: 1),
      resolved.isMulticast
    else {
      throw ValueError(
        "write a multicast group and an even port up to 65532, as in 239.1.2.3:5004 or [ff15::7]:5004")
    }
    return RTSPServerConfiguration.Group(address: address, port: UInt16(port), timeToLive: 1)
  }
}

extension Optimization {
  /// The raw values of all cases.
  package static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
