import Adaptors
import Media

/// The last macroblocks of a picture's slices; of HEVC, their last coding tree blocks. The picture is whole if each of them is
/// decoded: a slice goes from its first macroblock on, in the order of the raster, and what is missing is missing at the end of
/// the slice before it.
struct SliceEnds {
  private enum Structure {
    case frame
    /// A frame of pairs of macroblocks, one above the other.
    case pairs
    case field(isBottom: Bool)
    /// Coding tree blocks of this side, in a picture of this width.
    case blocks(side: Int, pictureWidth: Int)
  }

  private let structure: Structure
  private let width: Int
  /// The addresses of the macroblocks, or of the pairs. The first is the last one of the picture.
  private var addresses: [Int]
  private var slices = 1
  private var isRaster = true

  /// Creates the ends of a picture with one slice.
  init(_ slice: SliceSyntax, _ sequence: SequenceSyntax) {
    var height = sequence.heightInMapUnits
    if sequence.isFrameOnly {
      structure = .frame
    } else if slice.isField {
      structure = .field(isBottom: slice.isBottom)
    } else if sequence.isAdaptive {
      structure = .pairs
    } else {
      structure = .frame
      height *= 2
    }
    width = sequence.widthInMacroblocks
    addresses = [width * height - 1]
  }

  /// Creates the ends of a picture of HEVC with one slice segment. With tiles, the blocks are not in the order of the raster: the
  /// last one alone is known.
  init(_ sequence: HEVCSequenceParameterSet, hasTiles: Bool) {
    let side = sequence.codingTreeBlock
    structure = .blocks(side: side, pictureWidth: sequence.codedSize.width)
    isRaster = !hasTiles
    width = (sequence.codedSize.width + side - 1) / side
    addresses = [width * ((sequence.codedSize.height + side - 1) / side) - 1]
  }

  /// `true` if the picture has more than one slice.
  var isSliced: Bool { slices > 1 }

  /// Adds another slice, which begins at `first`. Returns `false` if the picture has no such macroblock.
  mutating func add(_ first: Int) -> Bool {
    // A picture of one macroblock has no other: the last address is 0.
    guard first >= 1, first <= addresses[0] else { return false }
    slices += 1
    if isRaster { addresses.append(first - 1) }
    return true
  }

  /// The number of samples in a row of a mark.
  static let markWidth = 8

  /// Passes the place of each row of luma samples that tells of the macroblocks: `markWidth` samples of the frame from (x, y).
  /// They lie in the middle, where the deblocking of the macroblocks around changes nothing.
  func forEachRow(_ body: (_ x: Int, _ y: Int) -> Void) {
    for address in addresses {
      let (row, column) = address.quotientAndRemainder(dividingBy: width)
      let x = 16 * column + 4
      switch structure {
      case .frame: for line in 4..<8 { body(x, 16 * row + line) }
      // Frame macroblocks have either half of the pair, field macroblocks every second line.
      case .pairs: for line in [4, 5, 6, 7, 20, 21, 22, 23] { body(x, 32 * row + line) }
      case .blocks(let side, let pictureWidth):
        // A block at the right or lower edge may have eight columns or rows of the picture.
        let left = side * column
        for line in 3..<5 { body(pictureWidth - left < 16 ? left : left + 4, side * row + line) }
      case .field(let isBottom): for line in 4..<8 { body(x, 2 * (16 * row + line) + (isBottom ? 1 : 0)) }
      }
    }
  }
}
