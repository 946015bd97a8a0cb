// packetize-h264 IN.h264 ADDRESS PORT [FPS]: sends an Annex B stream as RTP (RFC 6184) to an IPv4 address, at its pace,
// and prints the session description that a player needs first.
import Glibc
import Media
import Platform
import RTP

guard CommandLine.arguments.count >= 4, let port = UInt16(CommandLine.arguments[3]),
  let address = ConnectionAddress(CommandLine.arguments[2])
else {
  print("usage: packetize-h264 IN.h264 ADDRESS PORT [FRAMES A SECOND]")
  exit(64)
}
let framesPerSecond = CommandLine.arguments.dropFirst(4).first.flatMap { Double($0) } ?? 30

func fail(_ reason: String, _ code: Int32) -> Never {
  let line = "packetize-h264: \(reason)\n"
  write(STDERR_FILENO, line, line.utf8.count)
  exit(code)
}

guard let file = fopen(CommandLine.arguments[1], "r") else { fail("cannot read \(CommandLine.arguments[1])", 66) }
fseek(file, 0, SEEK_END)
let stream = UnsafeMutableRawBufferPointer.allocate(byteCount: ftell(file), alignment: 1)
rewind(file)
guard fread(stream.baseAddress, 1, stream.count, file) == stream.count else { fail("cannot read it all", 74) }

// snippet.read
// Where one access unit ends and the next begins: before parameter sets, and before a slice that starts at the first
// macroblock (first_mb_in_slice = 0 is the single bit 1) after a slice (H.264 clause 7.4.1.2.3, as far as it goes
// here).
var accessUnits: [[NALUnit]] = [[]]
var hasSlice = false
var parameters: (sequence: [UInt8], picture: [UInt8]) = ([], [])
AnnexB.forEachNALUnit(in: UnsafeRawBufferPointer(stream)) { unit in
  let isSlice = unit.type == .nonIDRSlice || unit.type == .idrSlice
  let isFirst = isSlice && unit.bytes.count > 1 && unit.bytes[1] & 0x80 != 0
  if hasSlice, isFirst || !isSlice {
    accessUnits.append([])
    hasSlice = false
  }
  accessUnits[accessUnits.count - 1].append(unit)
  hasSlice = hasSlice || isSlice
  if unit.type == .sequenceParameterSet { parameters.sequence = Array(unit.bytes) }
  if unit.type == .pictureParameterSet { parameters.picture = Array(unit.bytes) }
}
// snippet.end
guard let sets = ParameterSets(sequence: parameters.sequence, picture: parameters.picture) else {
  fail("no parameter sets in \(CommandLine.arguments[1])", 65)
}

let now = Instant.now()
print(
  SessionDescription(
    payload: .h264(sets), address: address, port: port, timeToLive: 1, sessionID: UInt64(now.nanoseconds), version: 1,
    name: "packetize-h264", tool: "nightjar", kilobitsPerSecond: nil
  ).text, terminator: "")
fflush(nil)

var destination = sockaddr_in()
destination.sin_family = sa_family_t(AF_INET)
destination.sin_port = port.bigEndian
guard inet_pton(AF_INET, CommandLine.arguments[2], &destination.sin_addr) == 1 else { fail("not an IPv4 address", 64) }
let socketDescriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)

do {
  // snippet.packetize
  var packetizer = try H264Packetizer()
  let batch = PacketBatch()
  for (index, nalUnits) in accessUnits.enumerated() {
    let position = Duration(seconds: Double(index) / framesPerSecond)
    nalUnits.withUnsafeBufferPointer { nalUnits in
      let unit = AccessUnit(
        nalUnits: nalUnits, isKeyFrame: nalUnits.contains { $0.type == .idrSlice }, timestamp: .zero + position,
        captured: now + position)
      batch.removeAll()
      packetizer.packetize(unit, into: batch)
    }
    // A packet is a header of the batch's and a payload that lies in the stream: nothing is copied.
    for number in 0..<batch.count {
      let packet = batch[number]
      var parts = [
        iovec(iov_base: UnsafeMutableRawPointer(mutating: packet.header.baseAddress), iov_len: packet.header.count),
        iovec(iov_base: UnsafeMutableRawPointer(mutating: packet.payload.baseAddress), iov_len: packet.payload.count),
      ]
      withUnsafeMutablePointer(to: &destination) { name in
        parts.withUnsafeMutableBufferPointer { parts in
          var message = msghdr()
          message.msg_name = UnsafeMutableRawPointer(name)
          message.msg_namelen = socklen_t(MemoryLayout<sockaddr_in>.size)
          message.msg_iov = parts.baseAddress
          message.msg_iovlen = parts.count
          // Nobody may be listening yet: that is no reason to stop.
          _ = sendmsg(socketDescriptor, &message, 0)
        }
      }
    }
    usleep(UInt32(1_000_000 / framesPerSecond))
  }
  // snippet.end
} catch {
  fail("\(error)", 70)
}
