import Capture
import Glibc
import Media
import Platform
import TestSupport
import Testing

/// The synthetic camera's pace and picture.
@Suite struct SyntheticCameraTests {
  static let hd = PictureSize(width: 1280, height: 720)

  /// The next picture, whatever was dropped before it.
  static func picture(of camera: SyntheticCamera, _ interrupt: borrowing Interrupt) throws -> Frame {
    for _ in 0..<100 {
      if case .frame(let frame) = camera.next(interrupt: interrupt) { return frame }
    }
    throw SystemFailure("no picture from the synthetic camera", errorNumber: ETIMEDOUT)
  }

  /// Reads a line of text back from luma: the character whose dots agree everywhere, or `?`.
  static func text(in planes: NV12Planes, x: Int, y: Int, scale: Int, length: Int) -> String {
    let characters = Array("0123456789:.#- ABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
    var result = ""
    for index in 0..<length {
      var dots: UInt64 = 0
      for row in 0..<BitmapFont.rows {
        for column in 0..<BitmapFont.columns {
          let left = x + (index * BitmapFont.advance + column) * scale + scale / 2
          let sample = planes.luma[(y + row * scale + scale / 2) * planes.lumaStride + left]
          if sample == 235 { dots |= 1 << UInt64(row * BitmapFont.columns + column) }
        }
      }
      let match = characters.first { BitmapFont.dots($0) == dots }
      result.unicodeScalars.append(Unicode.Scalar(match ?? UInt8(ascii: "?")))
    }
    return result
  }

  @Test func `the bars have the values of ffmpeg's SMPTE RP 219 bars`() throws {
    // Every colour that ffmpeg's pattern of the same standard holds, as Y'CbCr of 4:4:4 samples.
    let size = Self.hd
    let raw = try output(
      of: "ffmpeg -nostdin -v error -f lavfi -i smptehdbars=size=\(size) -frames:v 1 -pix_fmt yuv444p -f rawvideo -")
    try #require(raw.count == size.pixels * 3)
    var colors: Set<[UInt8]> = []
    for index in 0..<size.pixels {
      colors.insert([raw[index], raw[size.pixels + index], raw[2 * size.pixels + index]])
    }
    for bar in TestPattern.bars {
      #expect(colors.contains([bar.y, bar.cb, bar.cr]), "\(bar)")
    }
  }

  @Test(arguments: [hd, PictureSize(width: 642, height: 362), PictureSize(width: 3840, height: 2160)])
  func `the bars stand side by side above and below what moves`(size: PictureSize) throws {
    let camera = try SyntheticCamera(size: size, frameRate: .thirty, capacity: 1)
    let interrupt = try Interrupt()
    camera.start()
    let pattern = TestPattern(size: size)
    // Twice, for the second time there is only repainted what has changed.
    for _ in 0..<2 {
      let frame = try Self.picture(of: camera, interrupt)
      #expect(frame.color == .bt709)
      let planes = frame.planes
      for y in [0, pattern.box.y - 1, pattern.block.y + pattern.block.height, size.height - 1] {
        for (index, bar) in TestPattern.bars.enumerated() {
          let x = (index * 2 + 1) * size.width / 16
          #expect(planes.luma[y * planes.lumaStride + x] == bar.y)
          #expect(planes.chroma[y / 2 * planes.chromaStride + x / 2 * 2] == bar.cb)
          #expect(planes.chroma[y / 2 * planes.chromaStride + x / 2 * 2 + 1] == bar.cr)
        }
      }
    }
  }

  @Test func `the clock tells the time and the number counts the pictures`() throws {
    let camera = try SyntheticCamera(size: Self.hd, frameRate: .thirty)
    let interrupt = try Interrupt()
    let pattern = TestPattern(size: Self.hd)
    let x = pattern.box.x + 2 * pattern.scale
    camera.start()
    var tick: Int64 = 0
    var blocks: Set<Int> = []
    var pictures = 0
    while pictures < 6 {
      let before = WallClock.now()
      let frame: Frame
      switch camera.next(interrupt: interrupt) {
      case .frame(let next): frame = next
      case .dropped(let cause, let count):
        #expect(cause == .driver)
        tick += Int64(count)
        continue
      default:
        Issue.record("no picture")
        return
      }
      let after = WallClock.now()
      let clock = Self.text(
        in: frame.planes, x: x, y: pattern.box.y + 2 * pattern.scale, scale: pattern.scale, length: 12)
      let number = Self.text(
        in: frame.planes, x: x, y: pattern.box.y + 11 * pattern.scale, scale: pattern.scale, length: 12)
      let digits = String(tick)
      #expect(number == "#" + String(repeating: "0", count: 11 - digits.count) + digits)
      let (first, last) = (Self.string(before.text), Self.string(after.text))
      // Midnight may lie between.
      #expect(first > last || (first...last).contains(clock), "\(first) \(clock) \(last)")

      // The block is white and where it should be, and the bars are whole beside it.
      let block = pattern.block(atTick: tick)
      let row = frame.planes.luma + (block.y + 1) * frame.planes.lumaStride
      for column in 0..<Self.hd.width {
        let isBlock = (block.x..<block.x + block.width).contains(column)
        #expect(row[column] == (isBlock ? 235 : TestPattern.bars[column * 8 / Self.hd.width].y))
      }
      blocks.insert(block.x)
      tick += 1
      pictures += 1
    }
    #expect(blocks.count > 1)
  }

  static func string(_ text: InlineArray<12, UInt8>) -> String {
    String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
  }

  @Test func `a wall clock is written with all its zeros`() {
    #expect(Self.string(WallClock(hour: 3, minute: 0, second: 9, millisecond: 7).text) == "03:00:09.007")
    #expect(Self.string(WallClock(hour: 23, minute: 59, second: 58, millisecond: 999).text) == "23:59:58.999")
    #expect(Self.string(TestPattern.text(of: 0)) == "#00000000000")
    #expect(Self.string(TestPattern.text(of: 123_456_789_012)) == "#23456789012")
  }

  @Test func `every character has dots of its own, and unknown ones have none`() {
    let characters = Array("0123456789:.#-ABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
    let dots = characters.map { BitmapFont.dots($0) }
    #expect(Set(dots).count == characters.count)
    #expect(dots.allSatisfy { $0 != 0 && $0 < 1 << 35 })
    for character in Array(" a~".utf8) + [0, 127, 128, 255] { #expect(BitmapFont.dots(character) == 0) }
  }

  @Test(arguments: [FrameRate(240, 1), FrameRate(120_000, 1001), FrameRate(1, 1)])
  func `timestamps are strictly on the grid of the frame rate`(rate: FrameRate?) throws {
    let rate = try #require(rate)
    let camera = try SyntheticCamera(size: PictureSize(width: 64, height: 48), frameRate: rate)
    #expect(camera.format.frameRate == rate && camera.format.pixelFormat == .nv12 && camera.isLive)
    #expect(camera.name == "synthetic camera")
    let interrupt = try Interrupt()
    let before = Instant.now()
    camera.start()
    var start: Instant?
    var tick: Int64 = 0
    var pictures = 0
    let wanted = rate.framesPerSecond > 2 ? 20 : 2
    while pictures < wanted {
      switch camera.next(interrupt: interrupt) {
      case .frame(let frame):
        let origin = start ?? frame.timestamp - rate.time(ofFrame: tick)
        start = origin
        #expect(origin >= before)
        #expect(frame.timestamp == origin + rate.time(ofFrame: tick))
        #expect(frame.captured == frame.timestamp)
        #expect(Instant.now() >= frame.timestamp)
        tick += 1
        pictures += 1
      case .dropped(let cause, let count):
        #expect(cause == .driver && count > 0)
        tick += Int64(count)
      default:
        Issue.record("no picture")
        return
      }
    }
  }

  @Test func `a caller that oversleeps is told how many pictures it missed`() throws {
    let rate = try #require(FrameRate(100, 1))
    let camera = try SyntheticCamera(size: PictureSize(width: 64, height: 48), frameRate: rate)
    let interrupt = try Interrupt()
    camera.start()
    let first = try Self.picture(of: camera, interrupt).timestamp
    usleep(120_000)
    guard case .dropped(.driver, let count) = camera.next(interrupt: interrupt) else {
      Issue.record("no drop")
      return
    }
    #expect(count >= 10)
    let next = try Self.picture(of: camera, interrupt).timestamp
    #expect(next >= first + rate.time(ofFrame: Int64(count) + 1))
  }

  @Test func `an interrupt ends the wait, and stop ends the camera`() throws {
    let rate = try #require(FrameRate(1, 600))
    let camera = try SyntheticCamera(size: PictureSize(width: 64, height: 48), frameRate: rate)
    let interrupt = try Interrupt()
    camera.start()
    _ = try Self.picture(of: camera, interrupt)
    interrupt.fire()
    // The next picture is due in ten minutes.
    for _ in 0..<2 {
      guard case .idle = camera.next(interrupt: interrupt) else {
        Issue.record("not interrupted")
        return
      }
    }
    camera.stop()
    camera.stop()
    guard case .ended = camera.next(interrupt: interrupt) else {
      Issue.record("not ended")
      return
    }
  }

  @Test func `a picture without memory is a drop, and costs its tick`() throws {
    let rate = try #require(FrameRate(50, 1))
    let camera = try SyntheticCamera(size: PictureSize(width: 64, height: 48), frameRate: rate, capacity: 2)
    let interrupt = try Interrupt()
    camera.start()
    let first = try Self.picture(of: camera, interrupt)
    let second = try Self.picture(of: camera, interrupt)
    try expectExhaustion(of: camera, interrupt)
    #expect(first.timestamp < second.timestamp)
    let last = second.timestamp
    _ = consume first
    let third = try Self.picture(of: camera, interrupt)
    #expect(third.timestamp >= last + rate.time(ofFrame: 2) - Duration(nanoseconds: 1))
  }

  @Test func `no size makes it paint outside of the picture`() throws {
    let lengths = [16, 18, 20, 22, 30, 34, 42, 46, 50, 62, 66, 74, 76, 78, 80, 90, 130, 158, 162, 258]
    for width in lengths {
      for height in lengths {
        let size = PictureSize(width: width, height: height)
        let pattern = TestPattern(size: size)
        for area in [pattern.box] + (0..<200).map({ pattern.block(atTick: $0) }) {
          try #require(area.x >= 0 && area.y >= 0 && area.width > 0 && area.height > 0, "\(size)")
          try #require(area.x + area.width <= width && area.y + area.height <= height, "\(size)")
          try #require((area.x | area.y | area.width | area.height).isMultiple(of: 2), "\(size)")
        }
        // Planes in the middle of known bytes.
        let (stride, margin) = (width + 6, 1024)
        var luma = [UInt8](repeating: 1, count: stride * height + 2 * margin)
        var chroma = [UInt8](repeating: 2, count: stride * height / 2 + 2 * margin)
        luma.withUnsafeMutableBufferPointer { luma in
          chroma.withUnsafeMutableBufferPointer { chroma in
            guard let y = luma.baseAddress, let uv = chroma.baseAddress else { return }
            let planes = NV12Planes(
              size: size, luma: y + margin, lumaStride: stride, chroma: uv + margin, chromaStride: stride)
            pattern.paintBars(into: planes)
            for tick in [0, 1, 77, Int64.max] {
              let clock = WallClock(hour: 12, minute: 34, second: 56, millisecond: 789)
              pattern.paintForeground(block: pattern.block(atTick: tick), number: tick, clock: clock, into: planes)
            }
          }
        }
        func isOutside(_ index: Int, rows: Int) -> Bool {
          let place = index - margin
          return place < 0 || place >= stride * rows || place % stride >= width
        }
        // Samples are at least 16, so that what is still 1 or 2 was not painted.
        let isLumaRight = luma.enumerated().allSatisfy { ($1 == 1) == isOutside($0, rows: height) }
        let isChromaRight = chroma.enumerated().allSatisfy { ($1 == 2) == isOutside($0, rows: height / 2) }
        #expect(isLumaRight && isChromaRight, "\(size)")
      }
    }
  }

  @Test func `sizes and capacities that no pool has are refused`() throws {
    #expect(throws: FramePoolError.self) {
      try SyntheticCamera(size: PictureSize(width: 641, height: 480), frameRate: .thirty)
    }
    #expect(throws: FramePoolError.self) {
      try SyntheticCamera(size: PictureSize(width: 640, height: 480), frameRate: .thirty, capacity: 65)
    }
  }

  @Test func `ticks of any rate are found again, and none overflows`() throws {
    let rates: [(UInt32, UInt32)] = [
      (30, 1), (30_000, 1001), (1, 1), (1, .max), (.max, 1), (.max, .max - 1), (7_492_657, 250_000),
    ]
    for (numerator, denominator) in rates {
      let rate = try #require(FrameRate(numerator, denominator))
      for start in [Instant.zero, Instant(nanoseconds: 1_234_567_890_123)] {
        let schedule = FrameSchedule(start: start, rate: rate)
        #expect(schedule.lastTick(at: start - Duration(nanoseconds: 1)) == -1)
        for tick in [Int64(0), 1, 2, 29, 30, 1000, 30_001, 1_000_000, 1 << 40, .max] {
          let time = schedule.time(ofTick: tick)
          #expect(time >= start)
          if numerator <= 1_000_000, tick <= 30_001, denominator <= 1001 {
            #expect(time == start + rate.time(ofFrame: tick))
            #expect(schedule.lastTick(at: time) == tick)
            #expect(schedule.lastTick(at: time - Duration(nanoseconds: 1)) == tick - 1)
          }
        }
      }
    }
  }
}
