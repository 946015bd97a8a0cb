import CLinux
import Glibc
package import Media
import Platform

/// The synthetic camera's scene: colour bars with a moving block, a clock and a number.
///
/// The bars are painted once into each piece of memory. After that only the block's last place and the text's box are
/// painted again, which is a small part of the picture.
package struct TestPattern {
  /// One colour in 8-bit limited-range Y'CbCr.
  package struct Color: Equatable {
    package let y, cb, cr: UInt8
  }

  /// White, yellow, cyan, green, magenta, red, blue and black of 75 % amplitude by ITU-R BT.709: the values of
  /// SMPTE RP 219.
  package static let bars = [
    Color(y: 180, cb: 128, cr: 128), Color(y: 168, cb: 44, cr: 136), Color(y: 145, cb: 147, cr: 44),
    Color(y: 133, cb: 63, cr: 52), Color(y: 63, cb: 193, cr: 204), Color(y: 51, cb: 109, cr: 212),
    Color(y: 28, cb: 212, cr: 120), Color(y: 16, cb: 128, cr: 128),
  ]
  private static let black: UInt8 = 16
  private static let white: UInt8 = 235
  private static let noColor: UInt8 = 128

  /// An upright rectangle on even samples, within the picture.
  package struct Area: Equatable {
    package var x, y, width, height: Int
  }

  /// The number of luma samples to a dot of the font.
  package let scale: Int
  /// The black box behind the text.
  package let box: Area
  /// The block at the left end of its path.
  package let block: Area
  /// The field that is white while the test tone beeps, in the upper left corner.
  let flashArea: Area
  private let size: PictureSize
  /// The number of places of the block, two samples apart.
  private let places: Int64
  /// The number of places from one tick to the next.
  private let step: Int64
  private let lumaRow: [UInt8]
  private let chromaRow: [UInt8]

  /// The number of characters in each of the two lines of text.
  static let lineLength = 12

  /// Creates the scene for a picture of `size`, which must be encodable.
  package init(size: PictureSize) {
    self.size = size
    let textWidth = BitmapFont.width(of: Self.lineLength, scale: 1)
    let scale = max(1, min(size.width / 2 / textWidth, size.height / 40))
    self.scale = scale
    // Two lines with a margin of two dots around and between them.
    let boxWidth = min(size.width, (textWidth + 4) * scale / 2 * 2 + 2)
    let boxHeight = min(size.height, (2 * BitmapFont.rows + 6) * scale)
    let side = max(2, min(size.width, size.height) / 24 * 2)
    let top = max(0, (size.height - boxHeight - 2 * scale - side) / 4 * 2)
    box = Area(x: (size.width - boxWidth) / 4 * 2, y: top, width: boxWidth, height: boxHeight / 2 * 2)
    block = Area(x: 0, y: min(top + boxHeight + 2 * scale, size.height - side) / 2 * 2, width: side, height: side)
    flashArea = Area(x: 0, y: 0, width: side, height: side)
    places = Int64((size.width - side) / 2 + 1)
    step = max(1, places / 120)
    lumaRow = (0..<size.width).map { Self.bars[$0 / 2 * 16 / size.width].y }
    chromaRow = (0..<size.width).map {
      let bar = Self.bars[$0 / 2 * 16 / size.width]
      return $0.isMultiple(of: 2) ? bar.cb : bar.cr
    }
  }

  /// Returns the block's place at tick `index`.
  package func block(atTick index: Int64) -> Area {
    var area = block
    area.x = Int((index % places) * step % places) * 2
    return area
  }

  /// Paints the whole background.
  package func paintBars(into planes: NV12Planes) {
    paintBars(Area(x: 0, y: 0, width: size.width, height: size.height), into: planes)
  }

  /// Paints the background within `area` only.
  func paintBars(_ area: Area, into planes: NV12Planes) {
    lumaRow.withUnsafeBufferPointer { row in
      guard let row = row.baseAddress else { return }
      for y in area.y..<area.y + area.height {
        memcpy(planes.luma + y * planes.lumaStride + area.x, row + area.x, area.width)
      }
    }
    chromaRow.withUnsafeBufferPointer { row in
      guard let row = row.baseAddress else { return }
      for y in area.y / 2..<(area.y + area.height) / 2 {
        memcpy(planes.chroma + y * planes.chromaStride + area.x, row + area.x, area.width)
      }
    }
  }

  /// Paints the block in `area`, and the box with clock and number.
  package func paintForeground(block area: Area, number: Int64, clock: WallClock, into planes: NV12Planes) {
    fill(area, luma: Self.white, into: planes)
    fill(box, luma: Self.black, into: planes)
    let clockText = clock.text
    let numberText = Self.text(of: number)
    let x = box.x + 2 * scale
    BitmapFont.draw(
      clockText.span, x: x, y: box.y + 2 * scale, scale: scale, luma: Self.white, into: planes)
    BitmapFont.draw(
      numberText.span, x: x, y: box.y + (4 + BitmapFont.rows) * scale, scale: scale, luma: Self.white, into: planes)
  }

  /// Paints the flash: white while it is on, otherwise the bars behind it.
  func paintFlash(isOn: Bool, into planes: NV12Planes) {
    if isOn { fill(flashArea, luma: Self.white, into: planes) } else { paintBars(flashArea, into: planes) }
  }

  /// Returns a text such as `#00000001234`, modulo 10¹¹.
  package static func text(of number: Int64) -> InlineArray<12, UInt8> {
    var text = InlineArray<12, UInt8>(repeating: UInt8(ascii: "#"))
    var rest = number.magnitude
    for index in stride(from: lineLength - 1, to: 0, by: -1) {
      text[index] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
    return text
  }

  private func fill(_ area: Area, luma: UInt8, into planes: NV12Planes) {
    for y in area.y..<area.y + area.height {
      memset(planes.luma + y * planes.lumaStride + area.x, CInt(luma), area.width)
    }
    for y in area.y / 2..<(area.y + area.height) / 2 {
      memset(planes.chroma + y * planes.chromaStride + area.x, CInt(Self.noColor), area.width)
    }
  }
}

/// A time of day to the millisecond.
package struct WallClock {
  let hour, minute, second, millisecond: CInt

  /// Creates a time of day.
  package init(hour: CInt, minute: CInt, second: CInt, millisecond: CInt) {
    self.hour = hour
    self.minute = minute
    self.second = second
    self.millisecond = millisecond
  }

  /// Returns the present local time.
  package static func now() -> WallClock {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    var parts = tm()
    localtime_r(&time.tv_sec, &parts)
    return WallClock(
      hour: parts.tm_hour, minute: parts.tm_min, second: parts.tm_sec, millisecond: CInt(time.tv_nsec / 1_000_000))
  }

  /// The time as `12:34:56.789`.
  package var text: InlineArray<12, UInt8> {
    func digit(_ value: CInt) -> UInt8 { UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10) }
    let colon = UInt8(ascii: ":")
    return [
      digit(hour / 10), digit(hour), colon, digit(minute / 10), digit(minute), colon, digit(second / 10),
      digit(second), UInt8(ascii: "."), digit(millisecond / 100), digit(millisecond / 10), digit(millisecond),
    ]
  }
}
