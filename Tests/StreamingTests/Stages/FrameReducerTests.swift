import Media
import Platform
import Streaming
import TestSupport
import Testing

@Suite struct FrameReducerTests {
  private static let size = PictureSize(width: 320, height: 240)

  /// Back to a former size, and on to another: the one in use by then stays until the next change.
  @Test func `the way in use is not forgotten`() throws {
    let reducer = FrameReducer()
    let sizes = [(160, 120), (80, 60), (160, 120), (64, 48)].map { PictureSize(width: $0.0, height: $0.1) }
    let pool = try FramePool(size: Self.size)
    for (index, size) in sizes.enumerated() {
      try reducer.prepare(from: Self.size, to: size)
      for used in sizes[max(0, index - 1)...index] {
        let frame = try pool.frame(at: .zero)
        let planes = try reducer.reduce(frame, to: used).planes.size
        #expect(planes == used)
      }
    }
  }

  /// Sizes that no encoder could be opened for are prepared as well.
  @Test func `a way stays while frames take it, in both aspects`() throws {
    let reducer = FrameReducer()
    let used = PictureSize(width: 160, height: 120)
    try reducer.prepare(from: Self.size, to: used)
    for size in [(80, 60), (64, 48), (96, 72)].map({ PictureSize(width: $0.0, height: $0.1) }) {
      let frame = try FramePool(size: Self.size).frame(at: .zero)
      let planes = try reducer.reduce(frame, to: used).planes.size
      #expect(planes == used)
      try reducer.prepare(from: Self.size, to: size)
    }
    let turned = try FramePool(size: PictureSize(width: 240, height: 320)).frame(at: .zero)
    let planes = try reducer.reduce(turned, to: PictureSize(width: 120, height: 160)).planes.size
    #expect(planes == PictureSize(width: 120, height: 160))
  }

  @Test func `a reduced frame keeps the orientation for the encoder`() throws {
    let reducer = FrameReducer()
    try reducer.prepare(from: Self.size, to: PictureSize(width: 160, height: 120))
    var frame = try FramePool(size: Self.size).frame(at: .zero)
    frame.orientation = Orientation(.quarter)
    let reduced = try reducer.reduce(frame, to: PictureSize(width: 120, height: 160))
    let (planes, laid) = (reduced.planes.size, reduced.rotatedSize)
    #expect(planes == PictureSize(width: 160, height: 120))
    #expect(laid == PictureSize(width: 120, height: 160))
  }

  @Test func `without memory for it a frame is refused`() throws {
    let frame = try FramePool(size: Self.size).frame(at: .zero)
    do throws(EncoderError) {
      _ = try FrameReducer().reduce(frame, to: PictureSize(width: 160, height: 120))
      Issue.record("it was scaled")
    } catch {
      #expect(error.description == "no memory to scale pictures to 160x120")
    }
  }
}
