import CYUV
import Media

/// Rotates planes of 4:2:0 into an NV12 frame: whole pictures, or strips of rows from a conversion.
///
/// Its scratch memory is reserved once. Neither this class nor libyuv allocates anything: `RotatePlane180` would
/// allocate a row for each picture. So a half rotation mirrors the picture and writes its rows from the last to the first.
final class PictureRotator {
  /// Every orientation takes at most three steps: read source rows from the last to the first, then mirror or
  /// transpose, then write target rows from the last to the first.
  private let reversesSource: Bool
  private let mirrors: Bool
  /// `true` if rows become columns.
  let transposes: Bool
  private let reversesTarget: Bool

  private let size: PictureSize
  private let scratch: UnsafeMutablePointer<UInt8>
  /// The number of samples of each of Cb and Cr in `scratch`.
  private let scratchSamples: Int

  /// The number of columns of a transposed plane at a time: one cache line of each source row, and few enough target
  /// rows to stay in the cache together.
  private static let columns = 64
  /// The number of rows of planar chroma that are mirrored at a time.
  private static let rows = 16

  /// Creates a rotator that rotates pictures of `size` by `orientation`.
  init(_ orientation: Orientation, size: PictureSize) {
    self.size = size
    transposes = orientation.swapsSides
    mirrors = !transposes && (orientation.rotation == .half) != orientation.isMirrored
    switch orientation.rotation {
    case .none:
      reversesSource = false
      reversesTarget = false
    case .half:
      reversesSource = true
      reversesTarget = false
    case .quarter:
      // Transposing a picture with its rows reversed rotates it clockwise. Without the reversal the result is mirrored.
      reversesSource = !orientation.isMirrored
      reversesTarget = false
    case .threeQuarters:
      reversesSource = orientation.isMirrored
      reversesTarget = true
    }
    scratchSamples = max(size.width / 2 * Self.rows, size.height / 2 * Self.columns / 2)
    scratch = .allocate(capacity: scratchSamples * 2)
    // Touches the memory, so that the first picture causes no page fault.
    scratch.initialize(repeating: 0, count: scratchSamples * 2)
  }

  deinit {
    scratch.deallocate()
  }

  /// Rotates the luma of `rows` of the picture into `planes`. The first sample is at `source`.
  func rotateLuma(_ source: SourcePlane, rows: Range<Int>, into planes: NV12Planes) {
    let target = target(planes.luma, planes.lumaStride, rows: rows, of: size, bytesPerSample: 1)
    let source = self.source(source, rows: rows.count)
    let (from, to) = (CInt(source.stride), CInt(target.stride))
    if transposes {
      for column in stride(from: 0, to: size.width, by: Self.columns) {
        TransposePlane(
          source.base + column, from, target.base + column * target.stride, to,
          CInt(min(Self.columns, size.width - column)), CInt(rows.count))
      }
    } else if mirrors {
      MirrorPlane(source.base, from, target.base, to, CInt(size.width), CInt(rows.count))
    } else {
      CopyPlane(source.base, from, target.base, to, CInt(size.width), CInt(rows.count))
    }
  }

  /// Rotates interleaved chroma into `planes`: `rows` of its rows, the first pair at `source`.
  ///
  /// - Parameter isSwapped: `true` if Cr comes first.
  func rotateChroma(pairs source: SourcePlane, isSwapped: Bool, rows: Range<Int>, into planes: NV12Planes) {
    let chroma = PictureSize(width: size.width / 2, height: size.height / 2)
    let target = target(planes.chroma, planes.chromaStride, rows: rows, of: chroma, bytesPerSample: 2)
    let source = self.source(source, rows: rows.count)
    let (from, to) = (CInt(source.stride), CInt(target.stride))
    let (width, height) = (CInt(chroma.width), CInt(rows.count))
    if transposes {
      for column in stride(from: 0, to: chroma.width, by: Self.columns / 2) {
        let count = CInt(min(Self.columns / 2, chroma.width - column))
        let second = scratch + scratchSamples
        SplitTransposeUV(source.base + column * 2, from, scratch, height, second, height, count, height)
        MergeUVPlane(
          isSwapped ? second : scratch, height, isSwapped ? scratch : second, height,
          target.base + column * target.stride, to, height, count)
      }
    } else if mirrors {
      // Reversed bytes are reversed pairs with exchanged members.
      if isSwapped {
        MirrorPlane(source.base, from, target.base, to, width * 2, height)
      } else {
        MirrorUVPlane(source.base, from, target.base, to, width, height)
      }
    } else if isSwapped {
      SwapUVPlane(source.base, from, target.base, to, width, height)
    } else {
      CopyPlane(source.base, from, target.base, to, width * 2, height)
    }
  }

  /// Rotates planar chroma into `planes`: `rows` of its rows, the first samples at `cb` and `cr`.
  func rotateChroma(cb: SourcePlane, cr: SourcePlane, rows: Range<Int>, into planes: NV12Planes) {
    let chroma = PictureSize(width: size.width / 2, height: size.height / 2)
    let target = target(planes.chroma, planes.chromaStride, rows: rows, of: chroma, bytesPerSample: 2)
    let (cb, cr) = (source(cb, rows: rows.count), source(cr, rows: rows.count))
    let to = CInt(target.stride)
    let second = scratch + scratchSamples
    if transposes {
      let height = CInt(rows.count)
      for column in stride(from: 0, to: chroma.width, by: Self.columns / 2) {
        let count = CInt(min(Self.columns / 2, chroma.width - column))
        TransposePlane(cb.base + column, CInt(cb.stride), scratch, height, count, height)
        TransposePlane(cr.base + column, CInt(cr.stride), second, height, count, height)
        MergeUVPlane(
          scratch, height, second, height, target.base + column * target.stride, to, height, count)
      }
    } else if mirrors {
      let width = CInt(chroma.width)
      for row in stride(from: 0, to: rows.count, by: Self.rows) {
        let count = CInt(min(Self.rows, rows.count - row))
        MirrorPlane(cb.base + row * cb.stride, CInt(cb.stride), scratch, width, width, count)
        MirrorPlane(cr.base + row * cr.stride, CInt(cr.stride), second, width, width, count)
        MergeUVPlane(scratch, width, second, width, target.base + row * target.stride, to, width, count)
      }
    } else {
      MergeUVPlane(
        cb.base, CInt(cb.stride), cr.base, CInt(cr.stride), target.base, to, CInt(chroma.width), CInt(rows.count))
    }
  }

  /// Returns the start of the source and the distance to its next row.
  private func source(_ plane: SourcePlane, rows: Int) -> (base: UnsafePointer<UInt8>, stride: Int) {
    reversesSource ? (plane.base + (rows - 1) * plane.stride, -plane.stride) : (plane.base, plane.stride)
  }

  /// Returns the start of the target for `rows` of a plane of `size`, and the distance to the target's next row.
  private func target(
    _ base: UnsafeMutablePointer<UInt8>, _ stride: Int, rows: Range<Int>, of size: PictureSize, bytesPerSample: Int
  ) -> (base: UnsafeMutablePointer<UInt8>, stride: Int) {
    let first = reversesSource ? size.height - rows.upperBound : rows.lowerBound
    guard transposes else { return (base + first * stride, stride) }
    let column = base + first * bytesPerSample
    return reversesTarget ? (column + (size.width - 1) * stride, -stride) : (column, stride)
  }
}
