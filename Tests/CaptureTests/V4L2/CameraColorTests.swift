import CLinux
import Capture
import Media
import Testing

@Suite struct CameraColorTests {
  private struct Row: Sendable {
    var space: UInt32 = 0
    var transfer: UInt32 = 0
    var encoding: UInt32 = 0
    var quantization: UInt32 = 0
    var signal = CameraColor.Signal.other
    var format = PixelFormat.nv12
    let expected: String
  }

  /// V4L2's codes (`videodev2.h`), and the words that ffprobe has for what they mean.
  private static let rows: [Row] = [
    // Nothing said: a webcam is sRGB by BT.601.
    Row(expected: "bt709/iec61966-2-1/smpte170m limited range"),
    Row(signal: .standardDefinition, expected: "smpte170m limited range"),
    Row(signal: .highDefinition, expected: "bt709 limited range"),
    Row(space: 1, expected: "smpte170m limited range"),
    Row(space: 2, expected: "smpte240m limited range"),
    Row(space: 3, expected: "bt709 limited range"),
    Row(space: 5, expected: "bt470m/smpte170m/smpte170m limited range"),
    Row(space: 6, expected: "bt470bg/smpte170m/bt470bg limited range"),
    Row(space: 7, expected: "bt709/iec61966-2-1/smpte170m full range"),
    Row(space: 8, expected: "bt709/iec61966-2-1/smpte170m limited range"),
    Row(space: 9, expected: "unknown/gamma22/smpte170m limited range"),
    Row(space: 10, expected: "bt2020/transfer 14/bt2020nc limited range"),
    Row(space: 11, expected: "unknown/linear/smpte170m limited range"),
    Row(space: 12, expected: "primaries 11/transfer 17/bt709 limited range"),
    Row(space: 99, transfer: 99, encoding: 99, quantization: 99, expected: "unknown limited range"),
    // Said explicitly.
    Row(space: 8, transfer: 1, encoding: 2, quantization: 1, expected: "bt709 full range"),
    Row(space: 8, encoding: 3, expected: "bt709/iec61966-2-1/smpte170m limited range"),
    Row(space: 3, encoding: 4, expected: "bt709/transfer 11/bt709 limited range"),
    Row(space: 10, transfer: 7, encoding: 7, expected: "bt2020/smpte2084/bt2020c limited range"),
    Row(space: 3, transfer: 5, encoding: 8, expected: "bt709/linear/smpte240m limited range"),
    // JPEG is full range unless the driver says otherwise.
    Row(space: 8, format: .mjpeg, expected: "bt709/iec61966-2-1/smpte170m full range"),
    Row(space: 7, format: .jpeg, expected: "bt709/iec61966-2-1/smpte170m full range"),
    Row(space: 8, quantization: 2, format: .mjpeg, expected: "bt709/iec61966-2-1/smpte170m limited range"),
    // … and so is what has no colour.
    Row(space: 8, format: PixelFormat("GREY") ?? .nv12, expected: "bt709/iec61966-2-1/smpte170m full range"),
    Row(space: 8, format: PixelFormat("Y16") ?? .nv12, expected: "bt709/iec61966-2-1/smpte170m full range"),
    // libv4lconvert makes BT.601, limited range, of R'G'B', whatever that was.
    Row(
      space: 3, quantization: 1, format: PixelFormat("RGB3") ?? .nv12, expected: "bt709/bt709/smpte170m limited range"),
    Row(
      space: 8, encoding: 2, format: PixelFormat("BA81") ?? .nv12,
      expected: "bt709/iec61966-2-1/smpte170m limited range"),
    // … but passes the samples of Y'CbCr.
    Row(space: 3, quantization: 1, format: PixelFormat("NV16") ?? .nv12, expected: "bt709 full range"),
  ]

  @Test(arguments: rows)
  private func v4l2CodesBecomeThoseOfH264(_ row: Row) {
    let color = CameraColor(
      colorspace: row.space, transfer: row.transfer, encoding: row.encoding, quantization: row.quantization,
      signal: row.signal)
    #expect(color.description(of: row.format).description == row.expected)
  }

  @Test func jfifIsWhatItIsElsewhere() {
    let color = CameraColor(colorspace: V4L2_COLORSPACE_JPEG.rawValue)
    #expect(color.description(of: .mjpeg) == .jpeg)
    #expect(CameraColor(colorspace: V4L2_COLORSPACE_REC709.rawValue).description(of: .yuyv) == .bt709)
  }
}
