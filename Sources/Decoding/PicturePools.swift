package import Media
import PixelConversion
package import Platform

/// The pools of a stream's pictures: that of the present size, and those of former sizes of which somebody still holds pictures.
/// All pictures together count against one limit.
///
/// Memory is preallocated for one pool at a time. While pictures of another size are held, each new one has its memory mapped with
/// it, so that a picture that is held keeps no others in memory.
struct PicturePools {
  /// A pool that lives as long as its pictures.
  private struct Former {
    weak var pool: FramePool?
  }

  private var output: PictureOutput?
  private var former: [Former] = []

  /// Gives the next picture a pool of its own.
  mutating func retire() {
    former.removeAll { $0.pool == nil }
    if let output { former.append(Former(pool: output.pool)) }
    output = nil
  }

  /// Returns a copy of `picture`, with the driver's surface if that is kept; nil where `limit` pictures exist already.
  mutating func copy(
    _ picture: CodecPicture, _ format: PixelFormat, limit: Int, timestamp: Instant, captured: Instant,
    keepsSurface: Bool
  ) throws(DecoderError) -> DecodedPicture? {
    if output?.fits(picture) != true { retire() }
    if !former.isEmpty { former.removeAll { $0.pool == nil } }
    let present: PictureOutput
    if let output {
      present = output
    } else {
      present = try PictureOutput(size: picture.size, format: format, capacity: limit, isKept: former.isEmpty)
      output = present
    }
    let held = former.reduce(present.pool.held) { $0 + ($1.pool?.held ?? 0) }
    guard held < limit else { return nil }
    return try present.copy(picture, timestamp: timestamp, captured: captured, keepsSurface: keepsSurface)
  }
}

extension FramePool {
  /// The number of frames that are in use.
  fileprivate var held: Int { capacity - available }
}

/// The frames of one size into which pictures of one format are copied.
package final class PictureOutput {
  let pool: FramePool
  private let converter: PixelConverter
  private let format: PixelFormat

  /// Creates the pool of frames.
  ///
  /// - Parameter isKept: `true` preallocates the memory of all frames; `false` maps each frame's memory with the frame.
  /// - Throws: ``DecoderError/memory``; ``DecoderError/pictureSize(_:limit:)`` for an odd or tiny size.
  package init(size: PictureSize, format: PixelFormat, capacity: Int, isKept: Bool = true) throws(DecoderError) {
    self.format = format
    do {
      converter = try PixelConverter(from: format, size: size)
      pool = try FramePool(size: size, capacity: capacity, memory: FrameMemory(isKept: isKept))
    } catch let error as FramePoolError {
      if case .memory = error { throw .memory }
      throw .pictureSize(size, limit: "even sizes of at least 16x16 are decoded")
    } catch {
      throw .pictureSize(size, limit: "even sizes of at least 16x16 are decoded")
    }
  }

  /// Returns `true` if pictures like `picture` fit.
  func fits(_ picture: CodecPicture) -> Bool { pool.size == picture.size && format == picture.format }

  /// Returns a copy of `picture`, with the driver's surface if that is kept; nil where all frames are in use.
  package func copy(
    _ picture: CodecPicture, timestamp: Instant, captured: Instant, keepsSurface: Bool
  ) throws(DecoderError) -> DecodedPicture? {
    guard let source = picture.source else { throw .samples("\(picture.formatName) samples") }
    guard
      let frame = pool.checkout(color: picture.color, timestamp: timestamp, captured: captured)
    else { return nil }
    do throws(ConversionError) {
      try converter.convert(source, into: frame.planes)
    } catch {
      throw .samples("\(error)")
    }
    return DecodedPicture(frame, surface: keepsSurface ? picture.surface : nil)
  }
}
