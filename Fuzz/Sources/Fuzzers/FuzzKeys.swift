import Media
import Platform
import RTP
import SRTP

/// Any bytes as a MIKEY message and as an announcement, any text as `a=crypto` and as base64: what is read is the same when
/// it is written and read again.
enum FuzzKeys {
  static func take(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    do throws(MIKEYError) {
      let message = try MIKEYMessage(parsing: bytes)
      var generator = SplitMix()
      let written = message.bytes(at: NTPTimestamp(rawValue: 1), using: &generator)
      // One with many streams may be longer in our words.
      guard written.count <= MIKEYMessage.lengthLimit else { return }
      guard let again = try? MIKEYMessage(parsing: written), again == message else {
        fatalError("a message that is read otherwise")
      }
      precondition(message.streams.count < 256)
    } catch {
      precondition(error.description.utf8.count < 400)
    }
    if let packet = AnnouncementPacket(parsing: input) {
      precondition(packet.identifier.origin.count == 4 || packet.identifier.origin.count == 16)
      var schedule = AnnouncementSchedule()
      schedule.note(packet, at: .zero)
      precondition(schedule.count == (packet.isDeletion ? 0 : 1))
    }
    let text = String(decoding: input, as: UTF8.self)
    if let attribute = try? CryptoAttribute(parsing: text) {
      precondition((try? CryptoAttribute(parsing: attribute.text)) == attribute)
    }
    if let decoded = Base64.decode(bytes) { precondition(Base64.decode(Base64.encode(decoded).utf8) == decoded) }
  }

  private struct SplitMix: RandomNumberGenerator {
    private var state: UInt64 = 1
    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      return (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
    }
  }
}
