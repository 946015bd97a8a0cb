import CVA
import Media

/// Frames that the driver turns and mirrors on their way to the encoder: what a frame is copied into, or a DMA-BUF that
/// is read as it is, then the video processing, then the surface that is encoded.
///
/// What the driver lists is tried with a picture of four colours before it is believed. Of a quarter turn with a mirror
/// this decides as well which comes first: `va_vpp.h` says the turn, ffmpeg's `transpose_vaapi` relies on the mirror.
final class VideoTurning {
  /// What frames are copied into: room for either aspect.
  let input: SurfaceUpload
  /// The orientations that came out right; none after ``giveUp(_:)``.
  private(set) var orientations: OrientationSet = []
  /// Why there are none any more.
  private(set) var failure = "the driver's video processing does not do it"
  /// The size of what is encoded.
  let size: PictureSize
  private let output: SurfaceUpload
  private let processing: VideoProcessing
  /// DMA-BUFs with the encoder's width and height, and those with the other way round.
  private let level: ImportedSurfaces
  private let sideways: ImportedSurfaces
  /// As ``Orientation/all``.
  private var steps: [VideoProcessing.Step?] = Array(repeating: nil, count: Orientation.all.count)
  private var hasImported = false

  /// Opens the video processing for frames that have `size` once they are laid, and tries what it lists.
  ///
  /// - Throws: ``EncoderError``: a call of libva's failed, or nothing of it comes out right.
  init(_ display: VADisplayConnection, size: PictureSize, imports: Bool) throws(EncoderError) {
    self.size = size
    let side = max(size.width, size.height)
    input = try SurfaceUpload(display, size: PictureSize(width: side, height: side), count: 1)
    output = try SurfaceUpload(display, size: size, count: 1)
    processing = try VideoProcessing(display, targets: output.surfaces)
    level = ImportedSurfaces(display, size: size, isPossible: imports)
    sideways = ImportedSurfaces(display, size: size.turned, isPossible: imports)
    // What fills up the last macroblocks: it is never written again.
    try output.map()
    output.fill(luma: 128)
    _ = try output.finish()
    for source in size == size.turned ? [size] : [size, size.turned] where processing.takes(source) {
      try tryOut(source)
    }
    guard !orientations.isEmpty else {
      throw .unavailable("\(display.vendor) has no video processing that turns pictures of \(size)")
    }
  }

  /// The DMA-BUFs of frames that are to be laid by `orientation`.
  func imports(for orientation: Orientation) -> ImportedSurfaces { orientation.swapsSides ? sideways : level }

  /// No frame is laid from now on: `error` happened.
  func giveUp(_ error: EncoderError) {
    orientations = []
    failure = error.description
  }

  /// Lays the picture on `source` by `orientation`; the surface that it is on then.
  ///
  /// - Throws: ``EncoderError``; ``EncoderError/importRefused(library:)`` where the driver imports DMA-BUFs and has
  ///   never read one.
  func turn(
    _ source: VASurfaceID, isImported: Bool, by orientation: Orientation
  ) throws(EncoderError) -> VASurfaceID {
    guard let step = steps[orientation.index] else {
      throw .notTurned(orientation, reason: failure)
    }
    let target = output.surfaces.identifiers[0]
    do throws(EncoderError) {
      try processing.process(source, orientation.size(of: size), into: target, size, by: step)
    } catch {
      guard isImported, !hasImported else { throw error }
      imports(for: orientation).giveUp()
      throw .importRefused(library: "VA-API")
    }
    if isImported { hasImported = true }
    return target
  }

  /// Tries every orientation that makes ``size`` of pictures of `source`.
  private func tryOut(_ source: PictureSize) throws(EncoderError) {
    try input.map()
    input.withPlanes(of: source) { TestCard.draw(in: $0) }
    let surface = try input.finish(source)
    let target = output.surfaces.identifiers[0]
    for orientation in Orientation.all where orientation != .upright && orientation.size(of: source) == size {
      for step in Self.candidates(orientation) where processing.offers(step) {
        // What the driver lists and does not do is no reason to do without the rest.
        guard (try? processing.process(surface, source, into: target, size, by: step)) != nil else { continue }
        guard try output.read({ TestCard.isLaid(by: orientation, in: $0) }) else { continue }
        steps[orientation.index] = step
        orientations.insert(OrientationSet(orientation))
        break
      }
    }
  }

  /// What may come to the same as `orientation`.
  private static func candidates(_ orientation: Orientation) -> [VideoProcessing.Step] {
    let mirrors = [UInt32(VA_MIRROR_HORIZONTAL), UInt32(VA_MIRROR_VERTICAL)]
    let turn = orientation.rotation.steps
    guard orientation.isMirrored else { return [VideoProcessing.Step(rotation: turn, mirror: UInt32(VA_MIRROR_NONE))] }
    // A mirror top to bottom is one left to right and a half turn. On its side, the order matters.
    return mirrors.flatMap { mirror in
      let own = mirror == mirrors[0] ? turn : (turn + 2) % 4
      let other = orientation.swapsSides ? [(own + 2) % 4] : []
      return ([own] + other).map { VideoProcessing.Step(rotation: $0, mirror: mirror) }
    }
  }
}

/// A picture of four quarters, of which any turn and mirror can be told.
private enum TestCard {
  /// Luma, Cb and Cr, row by row.
  private static let quarters: [(luma: UInt8, cb: UInt8, cr: UInt8)] = [
    (60, 90, 160), (110, 160, 90), (160, 90, 100), (200, 150, 150),
  ]
  /// How far a sample may be off.
  private static let tolerance = 8

  static func draw(in planes: NV12Planes) {
    let (columns, rows) = (planes.size.width / 2, planes.size.height / 2)
    for row in 0..<planes.size.height {
      for column in 0..<planes.size.width {
        planes.luma[row * planes.lumaStride + column] = quarter(column, row, columns, rows).luma
      }
    }
    for row in 0..<rows {
      for column in 0..<columns {
        let pair = planes.chroma + row * planes.chromaStride + column * 2
        let color = quarter(column * 2, row * 2, columns, rows)
        pair[0] = color.cb
        pair[1] = color.cr
      }
    }
  }

  /// Whether the middle of each quarter in `planes` is what `orientation` makes of it.
  static func isLaid(by orientation: Orientation, in planes: NV12Planes) -> Bool {
    var laid = [0, 1, 2, 3]
    for _ in 0..<orientation.rotation.steps { laid = [laid[2], laid[0], laid[3], laid[1]] }
    if orientation.isMirrored { laid = [laid[1], laid[0], laid[3], laid[2]] }
    let size = planes.size
    return laid.indices.allSatisfy { place in
      let column = size.width / 4 + place % 2 * size.width / 2
      let row = size.height / 4 + place / 2 * size.height / 2
      let pair = planes.chroma + row / 2 * planes.chromaStride + column / 2 * 2
      let wanted = quarters[laid[place]]
      return isNear(planes.luma[row * planes.lumaStride + column], wanted.luma) && isNear(pair[0], wanted.cb)
        && isNear(pair[1], wanted.cr)
    }
  }

  private static func quarter(
    _ column: Int, _ row: Int, _ columns: Int, _ rows: Int
  ) -> (luma: UInt8, cb: UInt8, cr: UInt8) {
    quarters[(row < rows ? 0 : 2) + (column < columns ? 0 : 1)]
  }

  private static func isNear(_ sample: UInt8, _ wanted: UInt8) -> Bool {
    abs(Int(sample) - Int(wanted)) <= tolerance
  }
}

extension PictureSize {
  /// Width for height.
  var turned: PictureSize { PictureSize(width: height, height: width) }
}

extension Rotation {
  /// Quarters clockwise, which is libva's number (`VA_ROTATION_*`) too.
  fileprivate var steps: UInt32 { UInt32(degrees / 90) }
}
