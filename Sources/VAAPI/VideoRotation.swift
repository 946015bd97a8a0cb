import CVA
import Media

/// The rotation and mirroring of frames by the driver before encoding. A frame is copied into an input surface, or its
/// DMA-BUF is read in place. Video processing then writes the rotated picture to the surface that is encoded.
///
/// Each operation that the driver lists is tested with a picture of four colours before it is used. The test also finds
/// the order of a quarter rotation and a mirror: `va_vpp.h` says that the rotation comes first, ffmpeg's `transpose_vaapi`
/// relies on the mirror.
final class VideoRotation {
  /// The input surface that frames are copied into, with room for either aspect.
  let input: SurfaceUpload
  /// The orientations that passed the test; empty after ``giveUp(_:)``.
  private(set) var orientations: OrientationSet = []
  /// The reason why ``orientations`` is empty.
  private(set) var failure = "the driver's video processing does not do it"
  /// The size of the encoded pictures.
  let size: PictureSize
  private let output: SurfaceUpload
  private let processing: VideoProcessing
  /// The imported DMA-BUFs with the encoder's width and height. ``sideways`` has those with width and height swapped.
  private let level: ImportedSurfaces
  private let sideways: ImportedSurfaces
  /// The processing step for each orientation, in the order of ``Orientation/all``.
  private var steps: [VideoProcessing.Step?] = Array(repeating: nil, count: Orientation.all.count)
  private var hasImported = false

  /// Opens the video processing for frames that have `size` after rotation, and tests the operations that the driver
  /// lists.
  ///
  /// - Throws: ``EncoderError`` if a call to libva fails, or if no operation gives the right result.
  init(_ display: VADisplayConnection, size: PictureSize, imports: Bool) throws(EncoderError) {
    self.size = size
    let side = max(size.width, size.height)
    input = try SurfaceUpload(display, size: PictureSize(width: side, height: side), count: 1)
    output = try SurfaceUpload(display, size: size, count: 1)
    processing = try VideoProcessing(display, targets: output.surfaces)
    level = ImportedSurfaces(display, size: size, isPossible: imports)
    sideways = ImportedSurfaces(display, size: size.turned, isPossible: imports)
    // Pads the last macroblocks; the padding is never written again.
    try output.map()
    output.fill(luma: 128)
    _ = try output.finish()
    for source in size == size.turned ? [size] : [size, size.turned] where processing.takes(source) {
      try tryOut(source)
    }
    guard !orientations.isEmpty else {
      throw .unavailable("\(display.vendor) has no video processing that rotates pictures of \(size)")
    }
  }

  /// Returns the imported DMA-BUFs of frames that are to be rotated by `orientation`.
  func imports(for orientation: Orientation) -> ImportedSurfaces { orientation.swapsSides ? sideways : level }

  /// Stops rotating frames because of `error`.
  func giveUp(_ error: EncoderError) {
    orientations = []
    failure = error.description
  }

  /// Rotates the picture on `source` by `orientation` and returns the surface with the result.
  ///
  /// - Throws: ``EncoderError``. ``EncoderError/importRefused(library:)`` if the driver imports DMA-BUFs but has never
  ///   read one.
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

  /// Tests every orientation that rotates pictures of size `source` to ``size``.
  private func tryOut(_ source: PictureSize) throws(EncoderError) {
    try input.map()
    input.withPlanes(of: source) { TestCard.draw(in: $0) }
    let surface = try input.finish(source)
    let target = output.surfaces.identifiers[0]
    for orientation in Orientation.all where orientation != .upright && orientation.size(of: source) == size {
      for step in Self.candidates(orientation) where processing.offers(step) {
        // An operation that the driver lists but fails to do does not rule out the others.
        guard (try? processing.process(surface, source, into: target, size, by: step)) != nil else { continue }
        guard try output.read({ TestCard.isRotated(by: orientation, in: $0) }) else { continue }
        steps[orientation.index] = step
        orientations.insert(OrientationSet(orientation))
        break
      }
    }
  }

  /// Returns the steps that may be equivalent to `orientation`.
  private static func candidates(_ orientation: Orientation) -> [VideoProcessing.Step] {
    let mirrors = [UInt32(VA_MIRROR_HORIZONTAL), UInt32(VA_MIRROR_VERTICAL)]
    let turn = orientation.rotation.steps
    guard orientation.isMirrored else { return [VideoProcessing.Step(rotation: turn, mirror: UInt32(VA_MIRROR_NONE))] }
    // A vertical mirror equals a horizontal mirror and a half rotation. With a quarter rotation, the order matters.
    return mirrors.flatMap { mirror in
      let own = mirror == mirrors[0] ? turn : (turn + 2) % 4
      let other = orientation.swapsSides ? [(own + 2) % 4] : []
      return ([own] + other).map { VideoProcessing.Step(rotation: $0, mirror: mirror) }
    }
  }
}

/// A picture of four quarters that shows which rotation and mirror were applied.
private enum TestCard {
  /// The luma, Cb and Cr of the quarters, row by row.
  private static let quarters: [(luma: UInt8, cb: UInt8, cr: UInt8)] = [
    (60, 90, 160), (110, 160, 90), (160, 90, 100), (200, 150, 150),
  ]
  /// The largest permitted difference of a sample from its expected value.
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

  /// Returns `true` if the centre of each quarter in `planes` has the colour that `orientation` puts there.
  static func isRotated(by orientation: Orientation, in planes: NV12Planes) -> Bool {
    var rotated = [0, 1, 2, 3]
    for _ in 0..<orientation.rotation.steps { rotated = [rotated[2], rotated[0], rotated[3], rotated[1]] }
    if orientation.isMirrored { rotated = [rotated[1], rotated[0], rotated[3], rotated[2]] }
    let size = planes.size
    return rotated.indices.allSatisfy { place in
      let column = size.width / 4 + place % 2 * size.width / 2
      let row = size.height / 4 + place / 2 * size.height / 2
      let pair = planes.chroma + row / 2 * planes.chromaStride + column / 2 * 2
      let wanted = quarters[rotated[place]]
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
  /// The size with width and height swapped.
  var turned: PictureSize { PictureSize(width: height, height: width) }
}

extension Rotation {
  /// The number of clockwise quarter rotations, which is also libva's value (`VA_ROTATION_*`).
  fileprivate var steps: UInt32 { UInt32(degrees / 90) }
}
