/// The extension unit of a camera that codes H.264 ("USB Device Class Definition for Video Devices: H.264 Payload",
/// revision 1.0, section 3.3), with the two controls that ask for a key frame and for a bitrate.
struct CodingUnit {
  /// `bUnitID`.
  static let number = 4
  private static let pictureType = 0x09
  private static let bitrateLayers = 0x0e

  /// The bitrates that it takes, in bits a second, and their distance.
  private static let bitrates = (least: 100_000, most: 20_000_000, step: 1000)

  /// The number of key frames that were asked for.
  private(set) var keyFrameRequests = 0
  /// `dwAverageBitrate`; 0 before the host has set it.
  private(set) var bitrate = 0
  /// `wPicType` of the last request: 1 for an IDR picture, 2 for one with new parameter sets.
  private(set) var lastPictureType = 0

  /// The unit's descriptor, behind the processing unit.
  static var descriptor: [UInt8] {
    var bytes: [UInt8] = [27, 0x24, 6, UInt8(number)]
    bytes += [0x41, 0x76, 0x9e, 0xa2, 0x04, 0xde, 0xe3, 0x47, 0x8b, 0x2b, 0xf4, 0x34, 0x1a, 0xff, 0x00, 0x3b]
    bytes += [2, 1, UInt8(USBDescriptors.Number.processingUnit), 2]
    bytes.append(1 << (pictureType - 1) | 1 << (bitrateLayers - 1), bytes: 2)
    return bytes + [0]
  }

  private static func length(_ selector: Int) throws(RequestError) -> Int {
    switch selector {
    case pictureType: 4
    case bitrateLayers: 10
    default: throw .invalidControl
    }
  }

  /// Returns the answer to a GET request.
  func answer(_ request: ClassRequest, selector: Int) throws(RequestError) -> [UInt8] {
    let length = try Self.length(selector)
    var bytes: [UInt8] = []
    switch request {
    case .length: bytes.append(length, bytes: 2)
    case .info: bytes = [0x03]
    case .set: throw .invalidRequest
    case .current: bytes = Self.value(selector, pictureType: 0, bitrate: bitrate)
    case .minimum: bytes = Self.value(selector, pictureType: 0, bitrate: Self.bitrates.least)
    case .maximum: bytes = Self.value(selector, pictureType: 2, bitrate: Self.bitrates.most)
    case .resolution: bytes = Self.value(selector, pictureType: 1, bitrate: Self.bitrates.step)
    case .initial: bytes = Self.value(selector, pictureType: 0, bitrate: 0)
    }
    return bytes
  }

  /// wLayerID and wPicType, or wLayerID, dwPeakBitrate and dwAverageBitrate.
  private static func value(_ selector: Int, pictureType type: Int, bitrate: Int) -> [UInt8] {
    var bytes: [UInt8] = [0, 0]
    if selector == pictureType {
      bytes.append(type, bytes: 2)
    } else {
      for _ in 0..<2 { bytes.append(bitrate, bytes: 4) }
    }
    return bytes
  }

  /// Obeys a SET_CUR request. Returns `true` if the next picture is to be a key frame.
  mutating func set(_ bytes: [UInt8], selector: Int) throws(RequestError) -> Bool {
    guard bytes.count == (try Self.length(selector)) else { throw .invalidRequest }
    if selector == Self.bitrateLayers {
      bitrate = bytes.number(at: 6, bytes: 4) ?? 0
      return false
    }
    guard let type = bytes.number(at: 2, bytes: 2), type <= 2 else { throw .outOfRange }
    keyFrameRequests += 1
    lastPictureType = type
    return type > 0
  }
}
