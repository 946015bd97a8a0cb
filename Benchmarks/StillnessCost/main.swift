// What it costs to look whether a camera's picture has frozen: the median processor time a picture, of pictures that
// change and of one that does not.
//
//   stillness-cost [ROUNDS]
import Capture
import Glibc
import Media
import Platform

/// The thread's processor time in microseconds.
func processorTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

/// The median of `rounds` pictures of noise, of which there are `count`, more than caches hold.
func measure(_ size: PictureSize, count: Int, rounds: Int) -> Double {
  let pictures = (0..<count).map { _ in
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: size.pixels * 3 / 2)
    var state = UInt64.random(in: 1...UInt64.max)
    for index in 0..<size.pixels * 3 / 2 {
      state = state &* 6_364_136_223_846_793_005 &+ 1
      memory[index] = UInt8(truncatingIfNeeded: state >> 56)
    }
    return memory
  }
  defer { for picture in pictures { picture.deallocate() } }
  var detector = StillnessDetector()
  let times = (0..<rounds).map { round in
    let memory = pictures[round % count]
    let planes = NV12Planes(
      size: size, luma: memory, lumaStride: size.width, chroma: memory + size.pixels, chromaStride: size.width)
    let start = processorTime()
    _ = detector.note(planes, at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(round)))
    return processorTime() - start
  }
  return times.sorted()[rounds / 2]
}

let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 2000
print("| size | changes, us a picture | does not |\n|---|---|---|")
for (width, height) in [(1280, 720), (1920, 1080), (3840, 2160)] {
  let size = PictureSize(width: width, height: height)
  let figures = [12, 1].map { count in (measure(size, count: count, rounds: rounds) * 10).rounded() / 10 }
  print("| \(size) | \(figures[0]) | \(figures[1]) |")
}
