import Media

/// The options of the command line: `--name value` pairs.
struct Options {
  var node = ""
  var output = ""
  /// Where the pictures that were encoded go, as NV12.
  var source: String?
  var frames = 30
  /// A picture every this many is asked to be an IDR; 0 for the first alone.
  var keyInterval = 0
  /// The frame before which the rate changes, and to what.
  var change: (frame: Int, bitrate: Int, frameRate: UInt32)?
  /// The frames before which another quality level is requested, and the levels; 0 for the driver's own.
  var qualityChanges: [(frame: Int, level: Int)] = []
  /// `true` if the frames come as DMA-BUFs (files in memory, here).
  var exports = false
  /// `true` if `prepare()` is called.
  var prepares = true
  /// The size of the frames, where it is not the encoder's.
  var frameSize: PictureSize?
  /// The rotation that the frames still need; the encoder's size is the one that they have afterwards.
  var orientation: Orientation?
  /// The amount of noise in the pictures, 0…40.
  var noise = 4
  /// `true` if a frame is encoded after `stop()`.
  var encodesAfterStop = false
  /// The step that is left out of every frame, `mapInput` or `load`: a client's mistake.
  var skippedStep: String?
  /// Goes on after an error, with the next frame.
  var goesOn = false
  /// Prints the driver's capabilities and ends.
  var listsCapabilities = false
  var configuration = EncoderConfiguration(
    size: PictureSize(width: 640, height: 480), frameRate: .thirty, bitrate: 2_000_000, color: .bt709)

  struct Misuse: Error {
    var text: String
  }

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let name = rest.popFirst() {
      guard let value = rest.popFirst() else { throw Misuse(text: "\(name) without a value") }
      try take(name, value)
    }
  }

  private mutating func take(_ name: String, _ value: String) throws {
    switch name {
    case "--node": node = value
    case "--output": output = value
    case "--source": source = value
    case "--frames": frames = try number(value)
    case "--key-interval": keyInterval = try number(value)
    case "--orientation":
      orientation = try Orientation(degrees: number(value), mirrored: orientation?.isMirrored ?? false)
    case "--mirrored":
      orientation = Orientation(orientation?.rotation ?? .none, mirrored: value == "yes")
    case "--noise": noise = try number(value)
    case "--export": exports = value == "yes"
    case "--prepare": prepares = value == "yes"
    case "--after-stop": encodesAfterStop = value == "yes"
    case "--without": skippedStep = value
    case "--go-on": goesOn = value == "yes"
    case "--capabilities": listsCapabilities = value == "yes"
    case "--frame-size": frameSize = try size(value)
    case "--size": configuration.size = try size(value)
    case "--bitrate": configuration.bitrate = try number(value)
    case "--slices": configuration.slices = try number(value)
    case "--quality": configuration.vaapiQuality = try number(value)
    case "--quality-change":
      let parts = try value.split(separator: ",").map { try number(String($0)) }
      guard parts.count == 2 else { throw Misuse(text: "--quality-change FRAME,LEVEL") }
      qualityChanges.append((parts[0], parts[1]))
    case "--small": configuration.isSmallRendition = value == "yes"
    case "--codec":
      guard let codec = VideoCodec(rawValue: value) else { throw Misuse(text: "codec \(value)") }
      configuration.codec = codec
    case "--low-power": configuration.prefersLowPower = value == "yes"
    case "--profile":
      guard let profile = H264Profile(rawValue: value) else { throw Misuse(text: "profile \(value)") }
      configuration.profile = profile
    case "--frame-rate":
      guard let rate = FrameRate(UInt32(try number(value))) else { throw Misuse(text: "frame rate \(value)") }
      configuration.frameRate = rate
    case "--rate-control":
      switch value {
      case "cbr": configuration.rateControl = .constantBitrate
      case "vbr": configuration.rateControl = .variableBitrate
      default: configuration.rateControl = .constantQuantizer(try number(value))
      }
    case "--change":
      let parts = try value.split(separator: ",").map { try number(String($0)) }
      guard parts.count == 3 else { throw Misuse(text: "--change FRAME,BITRATE,RATE") }
      change = (parts[0], parts[1], UInt32(parts[2]))
    default: throw Misuse(text: "no option \(name)")
    }
  }

  private func number(_ text: String) throws -> Int {
    guard let value = Int(text) else { throw Misuse(text: "\(text) is no number") }
    return value
  }

  private func size(_ text: String) throws -> PictureSize {
    let parts = text.split(separator: "x").compactMap { Int($0) }
    guard parts.count == 2 else { throw Misuse(text: "\(text) is no size") }
    return PictureSize(width: parts[0], height: parts[1])
  }
}
