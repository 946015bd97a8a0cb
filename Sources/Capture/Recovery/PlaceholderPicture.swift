import Glibc
package import Media
package import Platform
import Synchronization

/// A picture that replaces an absent camera's pictures: two to four lines of text with a running clock.
///
/// The picture is painted when the text changes, about once a second, and lent as often as needed. Any number of frames
/// share the same memory; nothing writes to the memory while one of them exists.
package final class PlaceholderPicture: FrameOwner, @unchecked Sendable {
  // Sendable: the mutable state belongs to the capture thread; `recycle` touches only the atomic counts.

  /// The lines of the placeholder.
  package struct Text: Equatable {
    /// The headline, such as `CAMERA DISCONNECTED`.
    var headline = ""
    /// The time of the loss, such as `SINCE 12:03`; empty for no line.
    var since = ""
    /// The reason why the camera cannot be opened, in a few words that disclose nothing; empty for no line.
    var obstacle = ""
    /// The clock, such as `14:37:07`.
    package var clock = ""

    /// Creates a text of these lines.
    package init(headline: String = "", since: String = "", obstacle: String = "", clock: String = "") {
      self.headline = headline
      self.since = since
      self.obstacle = obstacle
      self.clock = clock
    }
  }

  /// The size of the picture.
  let size: PictureSize
  private let first: Frame
  private let second: Frame
  private let lentFirst = Atomic<Int>(0)
  private let lentSecond = Atomic<Int>(0)
  private var text = Text()
  /// `true` if the second frame's memory holds the current text.
  private var showsSecond = false

  /// Creates a placeholder of `size` and allocates its memory.
  ///
  /// - Throws: `FramePoolError`.
  package init(size: PictureSize) throws(FramePoolError) {
    self.size = size
    let pool = try FramePool(size: size, capacity: 2)
    guard let first = pool.checkout(color: .bt709, timestamp: .zero, captured: .zero),
      let second = pool.checkout(color: .bt709, timestamp: .zero, captured: .zero)
    else { throw .capacity(2) }
    self.first = first
    self.second = second
    super.init()
    paint(Text(), into: self.first.planes)
  }

  /// Shows `text` from the next frame on. Returns `false`, and keeps the text, if frames with the earlier text are
  /// still in use.
  package func show(_ text: Text) -> Bool {
    guard text != self.text else { return true }
    let isFree = showsSecond ? lentFirst.load(ordering: .acquiring) == 0 : lentSecond.load(ordering: .acquiring) == 0
    guard isFree else { return false }
    paint(text, into: showsSecond ? first.planes : second.planes)
    showsSecond.toggle()
    self.text = text
    return true
  }

  /// Returns a frame with the text.
  package func frame(color: ColorDescription, timestamp: Instant) -> Frame {
    if showsSecond { lentSecond.add(1, ordering: .relaxed) } else { lentFirst.add(1, ordering: .relaxed) }
    var frame = Frame(
      planes: showsSecond ? second.planes : first.planes, color: color, timestamp: timestamp, captured: timestamp,
      slot: showsSecond ? 1 : 0, owner: self)
    frame.isPlaceholder = true
    return frame
  }

  /// Takes a frame back.
  package override func recycle(slot: Int) {
    if slot == 1 { lentSecond.subtract(1, ordering: .releasing) } else { lentFirst.subtract(1, ordering: .releasing) }
  }

  private static let background: UInt8 = 40
  private static let foreground: UInt8 = 220
  /// The number of characters of the longest line that is never cut.
  private static let lineLength = 22

  private func paint(_ text: Text, into planes: NV12Planes) {
    memset(planes.luma, CInt(Self.background), planes.lumaStride * size.height)
    memset(planes.chroma, 128, planes.chromaStride * size.height / 2)
    let lines = [text.headline, text.since, text.obstacle, text.clock].filter { !$0.isEmpty }
    // The largest dot with which the longest line fits, and all lines fit with one line's height between them.
    let widest = max(Self.lineLength, lines.map(\.utf8.count).max() ?? 0)
    let scale = min(
      size.width / (BitmapFont.width(of: widest, scale: 1) + 4), size.height / (8 * BitmapFont.rows))
    guard scale > 0 else { return }
    let pitch = 2 * BitmapFont.rows * scale
    var y = (size.height - lines.count * pitch + BitmapFont.rows * scale) / 2
    for line in lines {
      let bytes = line.utf8.map { (0x61...0x7a).contains($0) ? $0 - 0x20 : $0 }
      BitmapFont.draw(
        bytes.span, x: (size.width - BitmapFont.width(of: bytes.count, scale: scale)) / 2, y: y, scale: scale,
        luma: Self.foreground, into: planes)
      y += pitch
    }
  }
}
