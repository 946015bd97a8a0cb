// What a rotation costs: the median processor time of a conversion into NV12 in each orientation, and how often it allocates where
// a counter is preloaded. `Benchmarks/rotation` runs it.
//
//   rotation-cost WIDTH HEIGHT ROUNDS JPEG
import Glibc
import Media
import PixelConversion

/// The preloaded counter's `long nightjar_allocations(void)`.
typealias Counter = @convention(c) () -> CLong

/// The thread's processor time in microseconds: on a busy machine the clock tells how long others ran instead.
func processorTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

func median(_ times: [Double]) -> Double { times.sorted()[times.count / 2] }

func measure(_ format: PixelFormat, _ size: PictureSize, _ picture: SourcePicture, rounds: Int) throws {
  let counter = dlsym(nil, "nightjar_allocations").map { unsafeBitCast($0, to: Counter.self) }
  let orientations = Orientation.all
  // In turns, so that whatever else the machine does falls on all of them alike.
  var times = orientations.map { _ in [Double](repeating: 0, count: rounds) }
  var allocations = orientations.map { _ in 0 }
  let converters = try orientations.map { try PixelConverter(from: format, size: size, orientation: $0) }
  let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: size.pixels * 2)
  memory.initialize(repeating: 0, count: size.pixels * 2)
  defer { memory.deallocate() }
  for round in -5..<rounds {
    for (index, converter) in converters.enumerated() {
      let target = converter.frameSize
      let planes = NV12Planes(
        size: target, luma: memory, lumaStride: target.width, chroma: memory + target.pixels,
        chromaStride: target.width)
      let before = counter?() ?? 0
      let start = processorTime()
      try converter.convert(picture, into: planes)
      let end = processorTime()
      let after = counter?() ?? 0
      guard round >= 0 else { continue }
      times[index][round] = end - start
      allocations[index] = max(allocations[index], after - before)
    }
  }
  for (index, orientation) in orientations.enumerated() {
    let microseconds = Int(median(times[index]))
    print("\(format),\(orientation),\(microseconds),\(counter == nil ? -1 : allocations[index])")
  }
}

func run() throws {
  let arguments = CommandLine.arguments
  guard arguments.count == 5, let width = Int(arguments[1]), let height = Int(arguments[2]),
    let rounds = Int(arguments[3]), rounds > 0, let file = fopen(arguments[4], "r")
  else {
    print("usage: rotation-cost WIDTH HEIGHT ROUNDS JPEG")
    exit(EX_USAGE)
  }
  let size = PictureSize(width: width, height: height)
  var jpeg = [UInt8](repeating: 0, count: size.pixels * 4)
  let length = fread(&jpeg, 1, jpeg.count, file)
  fclose(file)
  let raw = (0..<size.pixels * 2).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
  try raw.withUnsafeBufferPointer { raw in
    guard let base = raw.baseAddress else { return }
    for format in [PixelFormat.nv12, .nv21, .yu12, .yuyv, .uyvy] {
      let isPacked = format == .yuyv || format == .uyvy
      let plane = SourcePlane(base: base, stride: isPacked ? width * 2 : width, byteCount: raw.count)
      try measure(format, size, SourcePicture(first: plane), rounds: rounds)
    }
  }
  try jpeg.withUnsafeBufferPointer { jpeg in
    guard let base = jpeg.baseAddress else { return }
    let plane = SourcePlane(base: base, stride: 0, byteCount: length)
    try measure(.mjpeg, size, SourcePicture(first: plane), rounds: rounds)
  }
}

try run()
