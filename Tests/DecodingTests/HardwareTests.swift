import CAVCodec
import Decoding
import Media
import Platform
import Testing

/// The particulars of decoding by a driver, as far as they can be told without one.
@Suite struct HardwareTests {
  private struct KeyFrames {
    var choice: HardwareChoice

    init(isPresent: Bool) { choice = HardwareChoice(isPresent: isPresent) }

    /// The answer at the next key frame.
    mutating func wantsHardware(isSliced: Bool = false, isNewSequence: Bool = false) -> Bool {
      choice.note(isSliced: isSliced, isNewSequence: isNewSequence)
      return choice.wantsHardware(isNewSequence: isNewSequence)
    }

    /// The number of key frames up to the one that hardware decodes.
    mutating func countToHardware() -> Int {
      var count = 1
      while count < 2000, !wantsHardware() { count += 1 }
      return count
    }
  }

  @Test func `hardware that failed is tried again, later and later`() {
    var stream = KeyFrames(isPresent: true)
    var counts = [stream.countToHardware()]
    for _ in 0..<7 {
      stream.choice.fail()
      counts.append(stream.countToHardware())
    }
    #expect(counts == [1, 32, 64, 128, 256, 512, 1024, 1024])
    // Another sequence is a reason to try at once, unless hardware failed often.
    stream.choice.fail()
    let hasPatience = stream.wantsHardware(isNewSequence: true)
    #expect(!hasPatience)
    stream = KeyFrames(isPresent: true)
    stream.choice.fail()
    let triesAgain = stream.wantsHardware(isNewSequence: true)
    #expect(triesAgain)
    stream = KeyFrames(isPresent: false)
    let isMadeUp = stream.wantsHardware(isNewSequence: true)
    #expect(!isMadeUp)
  }

  @Test func `pictures of several slices are for software`() {
    var stream = KeyFrames(isPresent: true)
    let answers = [false, true, false].map { stream.wantsHardware(isSliced: $0) }
    // The last one may have lost its other slices.
    #expect(answers == [true, false, false])
    stream.choice.begin(isPresent: true)
    let isForgotten = stream.wantsHardware()
    #expect(!isForgotten)
    let triesAgain = stream.wantsHardware(isNewSequence: true)
    #expect(triesAgain)
    // Between key frames too.
    for isSliced in [true, false] { stream.choice.note(isSliced: isSliced, isNewSequence: false) }
    let isNoted = !stream.wantsHardware()
    #expect(isNoted)
  }

  @Test func `the cropping that libavcodec leaves to the reader of a surface is applied`() throws {
    var frame: UnsafeMutablePointer<AVFrame>? = av_frame_alloc()
    defer { av_frame_free(&frame) }
    let surface = try #require(frame)
    surface.pointee.format = AV_PIX_FMT_NV12.rawValue
    (surface.pointee.width, surface.pointee.height) = (64, 48)
    #expect(av_frame_get_buffer(surface, 0) == 0)
    (surface.pointee.crop_left, surface.pointee.crop_top) = (6, 4)
    let picture = CodecPicture(surface, of: surface)
    #expect(picture.size == PictureSize(width: 58, height: 44))
    let luma = try #require(surface.pointee.data.0)
    let chroma = try #require(surface.pointee.data.1)
    let (lines, chromaLines) = (Int(surface.pointee.linesize.0), Int(surface.pointee.linesize.1))
    func sample(_ column: Int, _ row: Int) -> UInt8 { UInt8(row * 4 + column % 4) }
    for column in 0..<64 {
      for row in 0..<48 { luma[row * lines + column] = sample(column, row) }
      for row in 0..<24 { chroma[row * chromaLines + column] = sample(column, row) }
    }
    let output = try PictureOutput(size: picture.size, format: try #require(picture.format), capacity: 1)
    let copy = try #require(
      try output.copy(picture, timestamp: .zero, captured: .zero, keepsSurface: false))
    var expected: [UInt8] = []
    for row in Array(4..<48) + Array(2..<24) { for column in 6..<64 { expected.append(sample(column, row)) } }
    #expect((copy.bytes == expected) as Bool)
  }
}
