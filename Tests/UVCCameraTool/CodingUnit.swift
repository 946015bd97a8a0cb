/// The extension unit of a camera that codes H.264 ("USB Device Class Definition for Video Devices: H.264 Payload",
/// revision 1.0, section 3.3), with the two controls that ask for a key frame and for a bitrate.
struct CodingUnit {
  /// `bUnitID`.
  static let number = 4
  private static let pictureType = 0x09
  private static let bitrateLayers = 0x0e

  /// The number of key frames that were asked for.
  private(set) var keyFrameRequests = 0
  /// `dwAverageBitrate`; 0 before the host has set it.
  private(set) var bitrate = 0

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
    default: bytes = [UInt8](repeating: 0, count: length)
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
    return type > 0
  }
}
