import Media
import Platform

/// The output of a rendition's encoder: the queue of its pictures, with counts.
final class RenditionSink: AccessUnitSink {
  private let writer: CodedPictureWriter
  /// The pictures and their bytes since these were last counted.
  var (frames, bytes) = (0, 0)
  /// `true` if a picture was too large for the queue.
  var isLosing = false

  init(_ writer: CodedPictureWriter) { self.writer = writer }

  func take(_ unit: borrowing AccessUnit) {
    switch writer.write(unit, encoded: unit.isLastPart ? .now() : .zero) {
    case .taken: break
    case .closed: return
    case .tooLarge:
      isLosing = true
      return
    }
    if unit.isLastPart { frames += 1 }
    bytes += unit.payloadBytes
  }
}
