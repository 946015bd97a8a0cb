// What protecting a frame by SRTP costs: microseconds of processor time and allocations for a frame of packets, in each
// suite. `Benchmarks/srtp` runs it.
//
//   srtp-cost FRAME-BYTES PACKET-SIZE ROUNDS
import Glibc
import Media
import Platform
import RTP
import SRTP

/// The preloaded counter's `long nightjar_allocations(void)`.
typealias Counter = @convention(c) () -> CLong
let counter = dlsym(nil, "nightjar_allocations").map { unsafeBitCast($0, to: Counter.self) }

/// Processor time of this thread in nanoseconds.
func processorTime() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
guard arguments.count == 3, arguments.allSatisfy({ $0 > 0 }) else {
  print("usage: srtp-cost FRAME-BYTES PACKET-SIZE ROUNDS")
  exit(64)
}
let (frameBytes, packetSize, rounds) = (arguments[0], arguments[1], arguments[2])
var slice = (0..<frameBytes).map { UInt8(truncatingIfNeeded: $0 &* 131) }
slice[0] = 0x41

for suite in SRTPSuite.allCases {
  let protector = try PacketProtector(SRTPKey(random: suite))
  var packetizer = try H264Packetizer(maximumPacketSize: packetSize - suite.packetOverhead)
  let (plain, batch) = (PacketBatch(), PacketBatch())
  var times: [Int64] = []
  times.reserveCapacity(rounds)
  var allocations = 0
  for round in 0..<rounds + 10 {
    plain.removeAll()
    batch.removeAll()
    slice.withUnsafeBytes { bytes in
      guard let unit = NALUnit(bytes) else { return }
      withUnsafePointer(to: unit) { unit in
        let time = Instant(nanoseconds: Int64(round) * 33_333_333)
        packetizer.packetize(
          AccessUnit(
            nalUnits: UnsafeBufferPointer(start: unit, count: 1), isKeyFrame: false, timestamp: time, captured: time),
          into: plain)
      }
      let before = counter?() ?? 0
      let begin = processorTime()
      do { try protector.protect(plain, into: batch) } catch { fatalError("\(error)") }
      let end = processorTime()
      // The first ones make the memory.
      guard round >= 10 else { return }
      times.append(end - begin)
      allocations = max(allocations, (counter?() ?? 0) - before)
    }
  }
  times.sort()
  print("\(suite.rawValue),\(batch.count),\(times[rounds / 2]),\(times[rounds * 99 / 100]),\(allocations)")
}
