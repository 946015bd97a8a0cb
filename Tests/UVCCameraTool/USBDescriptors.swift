/// The names of the camera: strings and numbers that udev makes its identity of.
struct CameraIdentity {
  var manufacturer = "Nightjar"
  var product = "Rig Camera"
  var serial = "NJ000001"
  /// The Linux Foundation's, with the number of its webcam gadget.
  let vendorNumber: UInt16 = 0x1d6b
  let productNumber: UInt16 = 0x0102
}

/// The descriptors of a SuperSpeed UVC 1.1 camera with one bulk endpoint (USB 3.2 section 9.6, UVC 1.1 section 3), and
/// of the microphone that it may have.
struct USBDescriptors {
  /// Numbers that requests and descriptors share.
  enum Number {
    static let cameraTerminal = 1
    static let processingUnit = 2
    static let outputTerminal = 3
    static let controlInterface = 0
    static let streamingInterface = 1
    static let endpoint = 1
    static let soundControlInterface = 2
    static let soundStreamingInterface = 3
    static let soundEndpoint = 2
    /// `dwClockFrequency`, the unit of presentation times.
    static let clockRate = 48_000_000
    /// `dwMaxPayloadTransferSize`: what uvcvideo gives one URB at most, 32 packets of 1024 bytes.
    static let payloadLimit = 32 * 1024
  }

  let device: [UInt8]
  let configuration: [UInt8]
  /// Binary object store: without it the kernel refuses a device that says it is of USB 3.
  let objectStore: [UInt8]
  private let texts: [String]

  init(identity: CameraIdentity, formats: [CameraFormat], hasMicrophone: Bool) {
    var device: [UInt8] = [18, 1, 0x00, 0x03, 0xef, 2, 1, 9]
    device.append(identity.vendorNumber, bytes: 2)
    device.append(identity.productNumber, bytes: 2)
    device += [0x00, 0x01, 1, 2, 3, 1]
    self.device = device
    texts = [identity.manufacturer, identity.product, identity.serial]
    objectStore =
      [5, 0x0f, 22, 0, 2]
      + [7, 0x10, 2, 0x02, 0, 0, 0]
      // All speeds; latencies of zero keep link power management off.
      + [10, 0x10, 3, 0, 0x0e, 0, 1, 0, 0, 0]
    let interfaces = Self.control(codes: formats.contains { $0.coding == .h264 }) + Self.streaming(formats)
    var configuration: [UInt8] = [9, 2]
    // An interface association joins both interfaces to one function.
    let association: [UInt8] = [8, 0x0b, 0, 2, 0x0e, 0x03, 0, 0]
    let microphone = hasMicrophone ? MicrophoneDescriptors.function : []
    configuration.append(9 + association.count + interfaces.count + microphone.count, bytes: 2)
    configuration += [hasMicrophone ? 4 : 2, 1, 0, 0x80, 62]
    self.configuration = configuration + association + interfaces + microphone
  }

  /// String descriptor `index`; nil for one that is not there.
  func text(_ index: Int) -> [UInt8]? {
    if index == 0 { return [4, 3, 0x09, 0x04] }
    guard texts.indices.contains(index - 1) else { return nil }
    var units: [UInt8] = []
    for unit in texts[index - 1].utf16.prefix(126) { units.append(unit, bytes: 2) }
    return [UInt8(units.count + 2), 3] + units
  }

  /// The video control interface: camera, processing, coding, output to USB.
  private static func control(codes: Bool) -> [UInt8] {
    var camera: [UInt8] = [18, 0x24, 2, UInt8(Number.cameraTerminal), 0x01, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    camera.append(CameraControls.bitmap(of: Number.cameraTerminal), bytes: 3)
    var processing: [UInt8] = [12, 0x24, 5, UInt8(Number.processingUnit), UInt8(Number.cameraTerminal), 0, 0, 2]
    processing.append(CameraControls.bitmap(of: Number.processingUnit), bytes: 2)
    processing += [0, 0]
    let output: [UInt8] = [
      9, 0x24, 3, UInt8(Number.outputTerminal), 0x01, 0x01, 0, UInt8(Number.processingUnit), 0,
    ]
    let coding = codes ? CodingUnit.descriptor : []
    var header: [UInt8] = [13, 0x24, 1, 0x10, 0x01]
    header.append(13 + camera.count + processing.count + coding.count + output.count, bytes: 2)
    header.append(Number.clockRate, bytes: 4)
    header += [1, UInt8(Number.streamingInterface)]
    return [9, 4, UInt8(Number.controlInterface), 0, 0, 0x0e, 1, 0, 0] + header + camera + processing + coding + output
  }

  /// The video streaming interface: formats, sizes and the bulk endpoint.
  private static func streaming(_ formats: [CameraFormat]) -> [UInt8] {
    let codings = [PictureCoding.mjpeg, .yuyv, .h264].filter { coding in formats.contains { $0.coding == coding } }
    var described: [UInt8] = []
    for coding in codings {
      let sizes = formats.filter { $0.coding == coding }
      let (number, count) = (UInt8(coding.rawValue), UInt8(sizes.count))
      switch coding {
      case .mjpeg: described += [11, 0x24, 6, number, count, 1, 1, 0, 0, 0, 0]
      case .yuyv: described += [27, 0x24, 4, number, count] + yuy2 + [16, 1, 0, 0, 0, 0]
      case .h264: described += [28, 0x24, 0x10, number, count] + h264 + [16, 1, 0, 0, 0, 0, 1]
      }
      for size in sizes { described += frame(size) }
      // Colours of BT.709 and the matrix of BT.601, as sRGB cameras say.
      described += [6, 0x24, 0x0d, 1, 1, 4]
    }
    let headerLength = 13 + codings.count
    var header: [UInt8] = [UInt8(headerLength), 0x24, 1, UInt8(codings.count)]
    header.append(headerLength + described.count, bytes: 2)
    header += [UInt8(0x80 | Number.endpoint), 0, UInt8(Number.outputTerminal), 0, 0, 0, 1]
    header += [UInt8](repeating: 0, count: codings.count)
    let endpoint: [UInt8] = [7, 5, UInt8(0x80 | Number.endpoint), 2, 0x00, 0x04, 0, 6, 0x30, 0, 0, 0, 0]
    return [9, 4, UInt8(Number.streamingInterface), 0, 1, 0x0e, 2, 0, 0] + header + described + endpoint
  }

  private static func frame(_ format: CameraFormat) -> [UInt8] {
    let intervals = CameraFormat.intervals
    let subtype: UInt8 =
      switch format.coding {
      case .mjpeg: 7
      case .yuyv: 5
      case .h264: 0x11
      }
    var bytes: [UInt8] = [UInt8(26 + 4 * intervals.count), 0x24, subtype, UInt8(format.index), 0]
    bytes.append(format.width, bytes: 2)
    bytes.append(format.height, bytes: 2)
    bytes.append(format.byteLimit * 8 * 15, bytes: 4)
    bytes.append(format.byteLimit * 8 * 30, bytes: 4)
    // A frame descriptor of a frame-based format has no largest size, but bytes a line, which are 0 here.
    if format.coding != .h264 { bytes.append(format.byteLimit, bytes: 4) }
    bytes.append(intervals[0], bytes: 4)
    bytes.append(UInt8(intervals.count), bytes: 1)
    if format.coding == .h264 { bytes.append(0, bytes: 4) }
    for interval in intervals { bytes.append(interval, bytes: 4) }
    return bytes
  }

  /// The GUID of H264 (UVC 1.1 "Frame Based Payload").
  private static let h264: [UInt8] = [
    0x48, 0x32, 0x36, 0x34, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71,
  ]

  /// The GUID of YUY2 (UVC 1.1 "Uncompressed Payload", table 2-1).
  private static let yuy2: [UInt8] = [
    0x59, 0x55, 0x59, 0x32, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71,
  ]
}
