/// The reason for which a request is refused: `bRequestErrorCode` (UVC 1.1 section 4.2.1.2). The request itself stalls.
enum RequestError: UInt8, Error {
  case wrongState = 2
  case outOfRange = 4
  case invalidUnit = 5
  case invalidControl = 6
  case invalidRequest = 7
}

/// A control of the camera terminal or the processing unit.
struct CameraControl {
  /// V4L2's name.
  let name: String
  let unit: Int
  let selector: Int
  /// Its bit in the unit's `bmControls`.
  let bit: Int
  /// The number of bytes of its value.
  let length: Int
  let range: ClosedRange<Int>
  /// The answer to `GET_RES`: a step, or of a bitmap the bits that are there.
  let resolution: Int
  let initial: Int
  var isSigned = false
  var isBitmap = false
  /// The control that sets this one by itself, and its value that lets others do it.
  var automatic: (name: String, manual: Int)?
  /// Where automatic ends up, by daylight.
  var settled = 0

  func permits(_ value: Int) -> Bool {
    guard range.contains(value) else { return false }
    if isBitmap { return value.nonzeroBitCount == 1 && value & ~resolution == 0 }
    return (value - range.lowerBound).isMultiple(of: resolution)
  }
}

/// The camera's controls and their values, which a camera without power forgets.
struct CameraControls {
  private typealias Number = USBDescriptors.Number
  private(set) var values: [String: Int]

  init() {
    values = Dictionary(uniqueKeysWithValues: Self.all.map { ($0.name, $0.initial) })
  }

  static let autoExposure = "auto_exposure"
  static let dynamicFrameRate = "exposure_dynamic_framerate"
  /// Aperture priority: `bAutoExposureMode` D3.
  static let aperturePriority = 8

  static let all: [CameraControl] = [
    CameraControl(
      name: autoExposure, unit: Number.cameraTerminal, selector: 2, bit: 1, length: 1, range: 1...8,
      resolution: 1 | aperturePriority, initial: aperturePriority, isBitmap: true),
    CameraControl(
      name: dynamicFrameRate, unit: Number.cameraTerminal, selector: 3, bit: 2, length: 1, range: 0...1,
      resolution: 1, initial: 1),
    CameraControl(
      name: "exposure_time_absolute", unit: Number.cameraTerminal, selector: 4, bit: 3, length: 4, range: 3...2047,
      resolution: 1, initial: 156, automatic: (autoExposure, 1), settled: 250),
    CameraControl(
      name: "focus_absolute", unit: Number.cameraTerminal, selector: 6, bit: 5, length: 2, range: 0...250,
      resolution: 5, initial: 0, automatic: ("focus_automatic_continuous", 0), settled: 30),
    CameraControl(
      name: "focus_automatic_continuous", unit: Number.cameraTerminal, selector: 8, bit: 17, length: 1,
      range: 0...1, resolution: 1, initial: 1),
    CameraControl(
      name: "brightness", unit: Number.processingUnit, selector: 2, bit: 0, length: 2, range: -64...64,
      resolution: 1, initial: 0, isSigned: true),
    CameraControl(
      name: "contrast", unit: Number.processingUnit, selector: 3, bit: 1, length: 2, range: 0...255, resolution: 1,
      initial: 128),
    CameraControl(
      name: "saturation", unit: Number.processingUnit, selector: 7, bit: 3, length: 2, range: 0...255, resolution: 1,
      initial: 128),
    CameraControl(
      name: "white_balance_temperature", unit: Number.processingUnit, selector: 0x0a, bit: 6, length: 2,
      range: 2000...6500, resolution: 1, initial: 4000, automatic: ("white_balance_automatic", 0), settled: 5200),
    CameraControl(
      name: "gain", unit: Number.processingUnit, selector: 4, bit: 9, length: 2, range: 0...255, resolution: 1,
      initial: 0),
    CameraControl(
      name: "power_line_frequency", unit: Number.processingUnit, selector: 5, bit: 10, length: 1, range: 0...2,
      resolution: 1, initial: 2),
    CameraControl(
      name: "white_balance_automatic", unit: Number.processingUnit, selector: 0x0b, bit: 12, length: 1, range: 0...1,
      resolution: 1, initial: 1),
  ]

  /// `bmControls` of a unit.
  static func bitmap(of unit: Int) -> Int {
    all.filter { $0.unit == unit }.reduce(0) { $0 | 1 << $1.bit }
  }

  /// `true` if a low light makes the camera slower.
  var lowersRateInTheDark: Bool {
    values[Self.autoExposure] == Self.aperturePriority && values[Self.dynamicFrameRate] == 1
  }

  /// One picture's step of everything automatic to where it settles: an eighth of the way.
  mutating func settle(inTheDark isDark: Bool) {
    for control in Self.all where isAutomatic(control) {
      guard let value = values[control.name] else { continue }
      let isExposure = control.automatic?.name == Self.autoExposure
      let target = isDark && isExposure ? control.range.upperBound : control.settled
      let steps = (target - value) / control.resolution
      values[control.name] = value + (steps == 0 ? 0 : steps / 8 == 0 ? steps.signum() : steps / 8) * control.resolution
    }
  }

  private func isAutomatic(_ control: CameraControl) -> Bool {
    guard let master = control.automatic else { return false }
    return values[master.name] != master.manual
  }

  private static func control(unit: Int, selector: Int) throws(RequestError) -> CameraControl {
    guard unit == Number.cameraTerminal || unit == Number.processingUnit else { throw .invalidUnit }
    guard let control = all.first(where: { $0.unit == unit && $0.selector == selector }) else {
      throw .invalidControl
    }
    return control
  }

  /// Returns the answer to a GET request.
  func answer(_ request: ClassRequest, unit: Int, selector: Int) throws(RequestError) -> [UInt8] {
    let control = try Self.control(unit: unit, selector: selector)
    var bytes: [UInt8] = []
    let value: Int
    switch request {
    case .current: value = values[control.name] ?? control.initial
    case .minimum: value = control.range.lowerBound
    case .maximum: value = control.range.upperBound
    case .resolution: value = control.resolution
    case .initial: value = control.initial
    case .length:
      bytes.append(control.length, bytes: 2)
      return bytes
    case .info:
      // GET, SET, disabled while automatic, and changing by itself.
      let disabled: UInt8 = isAutomatic(control) ? 0x04 : 0
      return [0x03 | disabled | (control.automatic == nil ? 0 : 0x08)]
    case .set: throw .invalidRequest
    }
    bytes.append(value, bytes: control.length)
    return bytes
  }

  /// Obeys a SET_CUR request.
  mutating func set(_ bytes: [UInt8], unit: Int, selector: Int) throws(RequestError) {
    let control = try Self.control(unit: unit, selector: selector)
    guard bytes.count == control.length, let unsigned = bytes.number(at: 0, bytes: control.length) else {
      throw .invalidRequest
    }
    let top = 1 << (8 * control.length - 1)
    let value = control.isSigned && unsigned >= top ? unsigned - 2 * top : unsigned
    guard !isAutomatic(control) else { throw .wrongState }
    guard control.permits(value) else { throw .outOfRange }
    values[control.name] = value
  }
}
