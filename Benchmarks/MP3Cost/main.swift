// What encoding MP3 for listeners costs: processor time for a second of sound, for each number of channels and effort.
//
//   swift run -c release mp3-cost [SECONDS]
import Glibc
import Platform
import Sound

/// Processor time of this process in seconds: POSIX counts in microseconds.
func processorTime() -> Double { Double(clock()) / 1e6 }

/// Something between speech and noise: a tone that rises and falls in noise, as no silence and no pure tone costs what a
/// room costs.
func sample(_ number: Int, _ random: inout UInt32) -> Int16 {
  random = random &* 1_664_525 &+ 1_013_904_223
  let time = Double(number) / 48_000
  let tone = 4000 * sin(2 * .pi * (300 + 200 * sin(2 * .pi * time)) * time)
  return Int16(tone + Double(random >> 20) - 2048)
}

let seconds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 60
guard (1...3600).contains(seconds) else {
  print("usage: mp3-cost [SECONDS], 1 to 3600")
  exit(64)
}
let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: MP3Encoder.byteLimit, alignment: 8)
print("channels,quality,processor milliseconds for a second of sound,kbit/s")
for channels in 1...2 {
  for quality: Int32 in [3, 5, 7] {
    var encoder = try MP3Encoder(channels: channels, quality: quality)
    var random: UInt32 = 1
    var (spent, bytes) = (0.0, 0)
    for piece in 0..<seconds * 50 {
      let samples = (0..<960 * channels).map { sample(piece * 960 + $0 / channels, &random) }
      let start = processorTime()
      bytes += try samples.withUnsafeBufferPointer { try encoder.encode($0, into: memory) }
      spent += processorTime() - start
    }
    let cost = (spent / Double(seconds) * 100_000).rounded() / 100
    print("\(channels),\(quality),\(cost),\(bytes * 8 / seconds / 1000)")
  }
}
