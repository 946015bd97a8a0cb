import Adaptors
import CFuzzer
import Decoding
import Glibc
import Media
import Platform

/// Any bytes as a byte stream for the decoder, with small limits: it traps nowhere, delivers no larger picture, and takes the
/// next stream as if nothing had been.
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

  static func take(_ input: UnsafeRawBufferPointer) {
    let limits = VideoDecoder.Configuration(
      acceleration: .software, maximumPixels: 640 * 480, maximumSide: 1024, maximumAccessUnitBytes: 65_536,
      poolCapacity: 2)
    guard let decoder = try? VideoDecoder(configuration: limits) else { fatalError("no decoder") }
    var reader = AnnexBReader()
    func decode(_ unit: EncodedPicture) {
      do throws(DecoderError) {
        for picture in try decoder.decode(unit) { precondition(picture.size.pixels <= 640 * 480) }
      } catch {
        precondition(!error.description.isEmpty)
      }
    }
    reader.append(input, timestamp: .zero) { decode($0) }
    reader.finish { decode($0) }
    _ = try? decoder.flush()
    decoder.invalidate()
  }
}
