/// A transport stream taken apart by the letter of ISO/IEC 13818-1, independent of the muxer's code.
struct TransportStreamReader {
  /// One PES packet of the video.
  struct Unit {
    var bytes: [UInt8] = []
    var pts: UInt64 = 0
    var isRandomAccess = false
    var isDiscontinuous = false
    var hasClock = false
  }

  /// One PES packet of the sound.
  struct Sound {
    var bytes: [UInt8] = []
    var pts: UInt64 = 0
    /// After how many video units it came.
    var place = 0
  }

  var units: [Unit] = []
  /// Opus packets, without what is around them.
  var sounds: [Sound] = []
  /// Every PCR in 27 MHz ticks, in order.
  var clocks: [UInt64] = []
  /// Sections by PID, in order.
  var sections: [(pid: Int, bytes: [UInt8])] = []
  /// After how many video units each PAT came.
  var tablePlaces: [Int] = []
  /// The violations of the rules.
  var faults: [String] = []
  private let hasSound: Bool

  init(_ stream: [UInt8], hasSound: Bool = false) {
    self.hasSound = hasSound
    if !stream.count.isMultiple(of: 188) { faults.append("\(stream.count) bytes are no whole packets") }
    var counters: [Int: UInt8] = [:]
    for start in stride(from: 0, to: stream.count - 187, by: 188) {
      read(Array(stream[start..<start + 188]), &counters)
    }
    for index in units.indices { openPES(index) }
    for index in sounds.indices { openSound(index) }
  }

  private mutating func read(_ packet: [UInt8], _ counters: inout [Int: UInt8]) {
    if packet[0] != 0x47 { faults.append("no sync byte") }
    let pid = Int(packet[1] & 0x1f) << 8 | Int(packet[2])
    let (isStart, control, counter) = (packet[1] & 0x40 != 0, packet[3] >> 4, packet[3] & 15)
    if packet[1] & 0xa0 != 0 || control & 0x0c != 0 || control == 0 { faults.append("header \(packet.prefix(4))") }
    if let last = counters[pid], counter != (control & 1 == 1 ? (last + 1) & 15 : last) {
      faults.append("continuity of PID \(pid): \(counter) after \(last)")
    }
    counters[pid] = counter
    var payloadStart = 4
    var unit = Unit()
    if control & 2 != 0 {
      payloadStart = 5 + Int(packet[4])
      if control == 2 && packet[4] != 183 { faults.append("an adaptation field alone has 183 bytes") }
      if payloadStart > 188 || (control == 3 && payloadStart > 187) {
        faults.append("adaptation field of \(packet[4])")
        return
      }
      if packet[4] > 0 {
        unit.isRandomAccess = packet[5] & 0x40 != 0
        unit.isDiscontinuous = packet[5] & 0x80 != 0
        var end = 6
        if packet[5] & 0x10 != 0 {
          unit.hasClock = true
          let base = packet[6..<10].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } << 1 | UInt64(packet[10] >> 7)
          clocks.append(base * 300 + UInt64(packet[10] & 1) << 8 + UInt64(packet[11]))
          if packet[10] & 0x7e != 0x7e { faults.append("reserved bits of PCR") }
          end = 12
        }
        if packet[5] & 0x2f != 0 { faults.append("adaptation flags \(packet[5])") }
        if packet[end..<payloadStart].contains(where: { $0 != 0xff }) { faults.append("stuffing") }
      }
    }
    guard control & 1 == 1 else { return }
    let payload = packet[payloadStart...]
    switch pid {
    case 0x100:
      if isStart { units.append(unit) } else if units.isEmpty { faults.append("a PES packet without a start") }
      if !units.isEmpty { units[units.count - 1].bytes += payload }
    case 0x101 where hasSound:
      if unit.hasClock || unit.isDiscontinuous { faults.append("a clock beside the video's") }
      if isStart { sounds.append(Sound(place: units.count)) }
      if sounds.isEmpty { faults.append("sound without a start") } else { sounds[sounds.count - 1].bytes += payload }
    case 0, 0x1000:
      if pid == 0 { tablePlaces.append(units.count) }
      if !isStart || payload.first != 0 { faults.append("a section starts after its pointer field") }
      let section = Array(payload.dropFirst())
      let length = 3 + Int(section[1] & 0x0f) << 8 + Int(section[2])
      sections.append((pid, Array(section.prefix(length))))
      if section.dropFirst(length).contains(where: { $0 != 0xff }) { faults.append("filling after a section") }
    default: faults.append("PID \(pid)")
    }
  }

  private mutating func openPES(_ index: Int) {
    let head = units[index].bytes.prefix(14)
    guard head.count == 14, head.starts(with: [0, 0, 1, 0xe0, 0, 0, 0x84, 0x80, 5]), head[9] >> 4 == 2,
      head[9] & head[11] & head[13] & 1 == 1
    else {
      faults.append("PES header \(Array(head))")
      return
    }
    units[index].pts = Self.timestamp(Array(head))
    units[index].bytes.removeFirst(14)
  }

  private static func timestamp(_ head: [UInt8]) -> UInt64 {
    let parts = [head[9] >> 1 & 7, head[10], head[11] >> 1, head[12], head[13] >> 1].map(UInt64.init)
    return parts[0] << 30 | parts[1] << 22 | parts[2] << 15 | parts[3] << 7 | parts[4]
  }

  /// A PES packet of private_stream_1 with one access unit, by ETSI's draft of Opus in MPEG-TS.
  private mutating func openSound(_ index: Int) {
    let bytes = sounds[index].bytes
    guard bytes.count > 17, bytes.starts(with: [0, 0, 1, 0xbd]), Int(bytes[4]) << 8 | Int(bytes[5]) == bytes.count - 6,
      Array(bytes[6..<9]) == [0x84, 0x80, 5], bytes[9] >> 4 == 2, bytes[9] & bytes[11] & bytes[13] & 1 == 1,
      bytes[14] == 0x7f, bytes[15] == 0xe0, let end = bytes[16...].firstIndex(where: { $0 != 0xff })
    else {
      faults.append("sound \(bytes.prefix(20))")
      return
    }
    let size = bytes[16...end].reduce(0) { $0 + Int($1) }
    sounds[index].pts = Self.timestamp(bytes)
    sounds[index].bytes.removeFirst(end + 1)
    if sounds[index].bytes.count != size { faults.append("\(sounds[index].bytes.count) bytes of sound, said \(size)") }
  }
}
