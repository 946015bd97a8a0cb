/// `bRequest` of UVC's requests (UVC 1.1 table A-8).
enum ClassRequest: UInt8 {
  case set = 0x01
  case current = 0x81
  case minimum = 0x82
  case maximum = 0x83
  case resolution = 0x84
  case length = 0x85
  case info = 0x86
  case initial = 0x87
}

/// A control transfer's setup packet (USB 2.0 section 9.3).
struct SetupPacket {
  let type: UInt8
  let request: UInt8
  let value: Int
  let index: Int
  let length: Int

  /// - Parameter bytes: Eight bytes.
  init(_ bytes: ArraySlice<UInt8>) {
    let bytes = [UInt8](bytes)
    type = bytes[0]
    request = bytes[1]
    value = bytes.number(at: 2, bytes: 2) ?? 0
    index = bytes.number(at: 4, bytes: 2) ?? 0
    length = bytes.number(at: 6, bytes: 2) ?? 0
  }
}
