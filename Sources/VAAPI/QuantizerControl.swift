import Glibc
import Media

/// Keeps a bitrate with a driver that has constant quantizers alone (Intel's without the HuC firmware): each picture's
/// quantizer follows from what the ones before it cost, on the rule that six steps halve the bits.
struct QuantizerControl {
  /// The quantizers that it uses: below the first one nothing is seen to get better.
  static let limits = 10...51

  /// What a configuration asks for.
  private struct Target {
    var bitsPerFrame: Double
    var bufferBits: Double
    /// How many frames a debt is paid back over.
    var horizon: Double

    init(_ configuration: EncoderConfiguration) {
      bitsPerFrame = Double(configuration.bitrate) / configuration.frameRate.framesPerSecond
      bufferBits = Double(configuration.bitrate) * configuration.bufferSeconds
      horizon = max(4, configuration.frameRate.framesPerSecond * configuration.bufferSeconds)
    }
  }

  private var target: Target
  /// Bits spent beyond the bitrate; negative where some were saved.
  private var debt = 0.0
  /// What an IDR picture, or a P picture, would cost at quantizer 0.
  private var intraCost: Double
  private var interCost: Double
  private var hasIntraCost = false
  private var last: Int?

  /// A control that has not seen a picture yet.
  init(_ configuration: EncoderConfiguration) {
    target = Target(configuration)
    // Half a bit a pixel at quantizer 26 is a picture with some detail.
    intraCost = Double(configuration.size.pixels) * 0.5 * exp2(26.0 / 6)
    interCost = intraCost / 6
  }

  /// Another bitrate or frame rate; what is known of the pictures stays.
  mutating func retarget(_ configuration: EncoderConfiguration) {
    target = Target(configuration)
    debt = min(max(debt, -target.bufferBits / 2), target.bufferBits)
  }

  /// The quantizer for the next picture.
  func quantizer(isIDR: Bool) -> Int {
    let share = target.bitsPerFrame - debt / target.horizon
    let wanted: Double
    if isIDR {
      // What a key frame takes beyond its share is paid back by the pictures after it.
      wanted = max(target.bitsPerFrame, min(share * 6, target.bufferBits * 0.5))
    } else {
      wanted = min(max(share, target.bitsPerFrame * 0.2), target.bitsPerFrame * 2)
    }
    let exact = 6 * log2((isIDR ? intraCost : interCost) / wanted)
    var quantizer = Int(min(max(exact.rounded(), Double(Self.limits.lowerBound)), Double(Self.limits.upperBound)))
    if !isIDR, let last { quantizer = min(max(quantizer, last - 4), last + 6) }
    return min(max(quantizer, Self.limits.lowerBound), Self.limits.upperBound)
  }

  /// Takes note of a picture of `bytes` at `quantizer`.
  mutating func coded(bytes: Int, quantizer: Int, isIDR: Bool) {
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
}
