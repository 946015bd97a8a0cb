import Glibc

/// A rate control for encoders that offer only constant quantizers while they run: drivers (Intel's without the HuC
/// firmware), and x265. Each quantizer follows from the sizes of the previous pictures, on the rule that six steps halve
/// the bits.
package struct QuantizerControl: Sendable {
  /// The range of quantizers. Below the lower bound the picture does not get visibly better.
  package static let limits = 10...51

  /// The targets of a configuration.
  private struct Target {
    var bitsPerFrame: Double
    var bufferBits: Double
    /// The number of frames over which a debt is paid back.
    var horizon: Double

    init(_ configuration: EncoderConfiguration) {
      bitsPerFrame = Double(configuration.bitrate) / configuration.frameRate.framesPerSecond
      bufferBits = Double(configuration.bitrate) * configuration.bufferSeconds
      horizon = max(4, configuration.frameRate.framesPerSecond * configuration.bufferSeconds)
    }
  }

  private var target: Target
  /// The bits spent beyond the bitrate; negative if bits were saved.
  private var debt = 0.0
  /// The bits of an IDR picture at quantizer 0; ``interCost`` is that of a P picture.
  private var intraCost: Double
  private var interCost: Double
  private var hasIntraCost = false
  private var last: Int?

  /// Creates a control for the first picture.
  package init(_ configuration: EncoderConfiguration) {
    target = Target(configuration)
    // Half a bit per pixel at quantizer 26 is a picture with some detail.
    intraCost = Double(configuration.size.pixels) * 0.5 * exp2(26.0 / 6)
    interCost = intraCost / 6
  }

  /// Changes the bitrate or the frame rate. The known costs of pictures stay.
  package mutating func retarget(_ configuration: EncoderConfiguration) {
    target = Target(configuration)
    debt = min(max(debt, -target.bufferBits / 2), target.bufferBits)
  }

  /// Returns the quantizer for the next picture.
  package func quantizer(isIDR: Bool) -> Int {
    let share = target.bitsPerFrame - debt / target.horizon
    let wanted: Double
    if isIDR {
      // The following pictures pay back the bits that a key frame takes beyond its share.
      wanted = max(target.bitsPerFrame, min(share * 6, target.bufferBits * 0.5))
    } else {
      wanted = min(max(share, target.bitsPerFrame * 0.2), target.bitsPerFrame * 2)
    }
    let exact = 6 * log2((isIDR ? intraCost : interCost) / wanted)
    var quantizer = Int(min(max(exact.rounded(), Double(Self.limits.lowerBound)), Double(Self.limits.upperBound)))
    if !isIDR, let last { quantizer = min(max(quantizer, last - 4), last + 6) }
    return min(max(quantizer, Self.limits.lowerBound), Self.limits.upperBound)
  }

  /// Records a picture of `bytes` at `quantizer`.
  package mutating func coded(bytes: Int, quantizer: Int, isIDR: Bool) {
    let bits = Double(max(1, bytes)) * 8
    let cost = bits * exp2(Double(quantizer) / 6)
    if isIDR {
      if !hasIntraCost { interCost = cost / 6 }
      intraCost = cost
      hasIntraCost = true
    } else {
      interCost = 0.5 * interCost + 0.5 * cost
    }
    debt = min(max(debt + bits - target.bitsPerFrame, -target.bufferBits / 2), target.bufferBits * 2)
    last = quantizer
  }

  /// Returns a quantizer for another attempt at a picture of `bytes` at `quantizer` that is larger than the buffer; nil if
  /// the picture fits, or a greater quantizer does not exist.
  package func quantizer(insteadOf quantizer: Int, bytes: Int) -> Int? {
    let bits = Double(bytes) * 8
    guard bits > target.bufferBits, quantizer < Self.limits.upperBound else { return nil }
    let steps = Int((6 * log2(bits / (target.bufferBits * 0.5))).rounded(.up))
    return min(quantizer + steps, Self.limits.upperBound)
  }
}
