// What the detectors of noise, crying and movement cost: the processor time of a measured picture, and of a second of sound.
//
//   detection-cost [SECONDS]
import Detection
import Glibc
import Media
import Platform

/// The thread's processor time in microseconds.
func processorTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

func rounded(_ value: Double, _ factor: Double) -> Double { (value * factor).rounded() / factor }

/// The times of `rounds` pictures of noise, of which there are more than caches hold: all cells move in each.
func pictureTimes(_ size: PictureSize, rounds: Int) -> [Double] {
  let pictures = (0..<12).map { _ in
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: size.pixels * 3 / 2)
    for index in 0..<size.pixels * 3 / 2 { memory[index] = UInt8.random(in: 16...235) }
    return memory
  }
  defer { for picture in pictures { picture.deallocate() } }
  var grid = LumaGrid()
  var detector = MovementDetector(.init())
  return (0..<rounds).map { round in
    let memory = pictures[round % pictures.count]
    let planes = NV12Planes(
      size: size, luma: memory, lumaStride: size.width, chroma: memory + size.pixels, chromaStride: size.width)
    let start = processorTime()
    grid.measure(planes)
    detector.note(grid, at: Double(round) / MovementDetector.rate)
    return processorTime() - start
  }.sorted()
}

/// The processor time of a second of sound with one channel, which has the harmonics of a voice for half of each second.
func soundTime(seconds: Int) -> Double {
  var detector = SoundDetector(channels: 1, .init())
  let second = (0..<48_000).map { index in
    let time = Double(index) / 48_000
    let voice = (1...8).reduce(0) { $0 + sin(2 * .pi * 450 * Double($1) * time) / Double($1) }
    let noise = Double.random(in: -1...1)
    return Int16(200 * noise + (index < 24_000 ? 4000 * voice : 0))
  }
  var total = 0.0
  for _ in 0..<seconds {
    for start in stride(from: 0, to: second.count, by: 960) {
      second[start..<(start + 960)].withUnsafeBufferPointer { frame in
        let begun = processorTime()
        _ = detector.note(frame)
        total += processorTime() - begun
      }
    }
  }
  return total / Double(seconds)
}

let seconds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 60
let sound = soundTime(seconds: seconds)
print("noise and crying: \(rounded(sound, 1)) us a second of sound, \(rounded(sound / 1e4, 100)) % of a core\n")
print(
  "| size | movement, us a measured picture: median | p99 | with \(MovementDetector.rate) a second, % of a core | all detectors |"
)
print("|---|---|---|---|---|")
for (width, height) in [(1280, 720), (1920, 1080), (3840, 2160)] {
  let size = PictureSize(width: width, height: height)
  let times = pictureTimes(size, rounds: seconds * 20)
  let (median, late) = (times[times.count / 2], times[times.count * 99 / 100])
  let share = median * MovementDetector.rate / 1e4
  print(
    "| \(size) | \(rounded(median, 1)) | \(rounded(late, 1)) | \(rounded(share, 100)) | \(rounded(share + sound / 1e4, 100)) |"
  )
}
