/// Probe and commit: which format at which rate (UVC 1.1 section 4.3.1.1).
struct StreamNegotiation {
  /// The requested values: a format, and `dwFrameInterval` in units of 100 ns.
  struct Setting {
    var format: CameraFormat
    var interval: Int
  }

  private let formats: [CameraFormat]
  private var probe: Setting
  /// The setting that was committed last; nil before.
  private(set) var committed: Setting?

  private static let length = 34

  /// - Parameter formats: At least one.
  init(formats: [CameraFormat]) {
    self.formats = formats
    probe = Setting(format: formats[0], interval: CameraFormat.intervals[0])
  }

  /// Returns the answer to a GET request.
  func answer(_ request: ClassRequest, selector: Int) throws(RequestError) -> [UInt8] {
    guard selector == 1 || selector == 2 else { throw .invalidControl }
    switch request {
    case .current, .initial, .minimum, .maximum:
      var setting = selector == 2 ? committed ?? probe : probe
      if request == .minimum { setting.interval = CameraFormat.intervals.min() ?? setting.interval }
      if request == .maximum { setting.interval = CameraFormat.intervals.max() ?? setting.interval }
      return Self.bytes(setting)
    case .length:
      var bytes: [UInt8] = []
      bytes.append(Self.length, bytes: 2)
      return bytes
    case .info: return [0x03]
    case .set, .resolution: throw .invalidRequest
    }
  }

  /// Obeys a SET_CUR request. Probing, the nearest that the camera can do is kept; committing, nothing else is taken.
  ///
  /// - Returns: `true` if the camera is to stream.
  mutating func set(_ bytes: [UInt8], selector: Int) throws(RequestError) -> Bool {
    guard selector == 1 || selector == 2 else { throw .invalidControl }
    guard let coding = bytes.number(at: 2, bytes: 1), let index = bytes.number(at: 3, bytes: 1),
      let asked = bytes.number(at: 4, bytes: 4)
    else { throw .invalidRequest }
    let format = formats.first { $0.coding.rawValue == coding && $0.index == index }
    let interval = CameraFormat.intervals.min { abs($0 - asked) < abs($1 - asked) } ?? asked
    if selector == 1 {
      probe = Setting(format: format ?? formats[0], interval: interval)
      return false
    }
    guard let format, interval == asked else { throw .outOfRange }
    committed = Setting(format: format, interval: interval)
    return true
  }

  private static func bytes(_ setting: Setting) -> [UInt8] {
    var bytes: [UInt8] = [1, 0, UInt8(setting.format.coding.rawValue), UInt8(setting.format.index)]
    bytes.append(setting.interval, bytes: 4)
    // Key frames, P frames, quality, window, delay: of no meaning here.
    bytes += [UInt8](repeating: 0, count: 10)
    bytes.append(setting.format.byteLimit, bytes: 4)
    bytes.append(USBDescriptors.Number.payloadLimit, bytes: 4)
    bytes.append(USBDescriptors.Number.clockRate, bytes: 4)
    // Frame identifiers and ends of frames are told in the payload headers.
    bytes += [3, 1, 1, 1]
    return bytes
  }
}
