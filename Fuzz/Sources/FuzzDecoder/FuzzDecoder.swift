import Adaptors
import CFuzzer
import Decoding
import Glibc
import Media
import Platform

/// Any bytes as a byte stream for the decoder, with small limits: it traps nowhere, delivers no larger picture, and shows the
/// next clean key frame as if nothing had been.
@main enum FuzzDecoder {
  static func main() {
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    exit(
      LLVMFuzzerRunDriver(&count, &arguments) { data, size in
        FuzzDecoder.take(UnsafeRawBufferPointer(start: data, count: size))
        return 0
      })
  }

  private static let limits = VideoDecoder.Configuration(
    acceleration: .software, maximumPixels: 640 * 480, maximumSide: 1024, maximumAccessUnitBytes: 65_536,
    poolCapacity: 2)

  /// The samples of ``keyFrame``, by a decoder that has seen nothing else.
  private static let expected: [UInt8] = {
    guard let decoder = try? VideoDecoder(configuration: limits), let bytes = shown(keyFrame, decoder) else {
      fatalError("the clean key frame is not shown")
    }
    return bytes
  }()

  /// The picture that the decoder shows of this key frame alone; nil if it shows none, or several.
  private static func shown(_ stream: [UInt8], _ decoder: VideoDecoder) -> [UInt8]? {
    let unit = EncodedPicture(annexB: stream, timestamp: .zero)
    guard let pictures = try? decoder.decode(unit), pictures.count == 1 else { return nil }
    return pictures[0].bytes
  }

  static func take(_ input: UnsafeRawBufferPointer) {
    for (codec, threads) in [(VideoCodec.h264, 1), (.h264, 4), (.hevc, 1)] {
      var configuration = limits
      configuration.threads = threads
      guard let decoder = try? VideoDecoder(configuration: configuration) else { fatalError("no decoder") }
      var reader = AnnexBReader(codec: codec)
      func decode(_ unit: EncodedPicture) {
        do throws(DecoderError) {
          for picture in try decoder.decode(unit) { precondition(picture.size.pixels <= 640 * 480) }
        } catch {
          precondition(!error.description.isEmpty)
        }
      }
      reader.append(input, timestamp: .zero) { decode($0) }
      reader.finish { decode($0) }
      // What is held back comes out before. After HEVC, the decoder begins anew with the key frame.
      if !decoder.needsKeyFrame { _ = try? decoder.flush() }
      precondition(shown(keyFrame, decoder) == expected, "the clean key frame is not shown right")
      decoder.invalidate()
    }
  }

  /// A key frame of 48x32 with its parameter sets, made by x264: bars of colours.
  private static let keyFrame: [UInt8] = [
    0x00, 0x00, 0x00, 0x01, 0x67, 0x42, 0xc0, 0x0a, 0xd9, 0x0d, 0x6c, 0x04, 0x40, 0x00, 0x00, 0x03, 0x00, 0x40,
    0x00, 0x00, 0x0c, 0x83, 0xc4, 0x89, 0x92, 0x00, 0x00, 0x00, 0x01, 0x68, 0xcb, 0x80, 0x49, 0x2c, 0x80, 0x00,
    0x00, 0x01, 0x65, 0x88, 0x84, 0x3f, 0x11, 0x83, 0xc0, 0x17, 0x10, 0x00, 0x08, 0x05, 0x9a, 0x23, 0x07, 0x80,
    0x7c, 0x40, 0x00, 0x20, 0x02, 0x44, 0x40, 0x00, 0x40, 0x1e, 0x33, 0x07, 0x80, 0x7c, 0x40, 0x08, 0x06, 0x8c,
    0x00, 0x01, 0x01, 0x8c, 0x0e, 0x90, 0xee, 0x43, 0xa4, 0x3b, 0x90, 0x3c, 0xca, 0xe4, 0x3c, 0xca, 0xe7, 0x8f,
    0xfe, 0x1f, 0x83, 0x42, 0xec, 0xbd, 0xf3, 0xc0, 0xf0, 0xc8, 0x83, 0xe1, 0x11, 0xa8, 0x40, 0xf9, 0xc1, 0xb3,
    0x96, 0x56, 0x72, 0xf6, 0x43, 0x9e, 0x10, 0x88, 0x60, 0x10, 0xff, 0xe9, 0x70, 0xb0, 0xb2, 0xe2, 0xbe, 0x53,
    0xc3, 0x0d, 0x19, 0x01, 0x84, 0xc4, 0xdd, 0x0b, 0x32, 0xcb, 0x6a, 0xae, 0x01, 0xc4, 0x45, 0x96, 0x56, 0xe5,
    0xdc, 0xf8, 0x78, 0x78, 0x7f, 0x36, 0x72, 0xe0, 0x45, 0xc9, 0xdb, 0x3d, 0xe7, 0x0a, 0x49, 0x07, 0x15, 0xbb,
    0x44, 0x8a, 0xcd, 0xbe, 0x7e, 0x1c, 0x8c, 0x92, 0xc0, 0x8e, 0xe6, 0x88, 0x1f, 0xe0,
  ]
}
