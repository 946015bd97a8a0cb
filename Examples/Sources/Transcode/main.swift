// transcode IN.h264|rtsp://… OUT.h264 BITRATE [PICTURES]: decodes a stream, and encodes it again at another bitrate.
import Adaptors
import Decoding
import Encoding
import Glibc
import Media
import Receiving

let words = CommandLine.arguments
guard words.count >= 4, let bitrate = Int(words[3]) else {
  print("usage: transcode IN.h264|rtsp://HOST/PATH OUT.h264 BITS_A_SECOND [PICTURES]")
  exit(64)
}
let limit = words.dropFirst(4).first.flatMap { Int($0) } ?? .max

do {
  guard let output = fopen(words[2], "w") else {
    print("cannot write \(words[2])")
    exit(73)
  }
  let decoder = try VideoDecoder()
  var encoder: (any VideoEncoder)?
  var count = 0

  // snippet.transcode
  func write(_ unit: borrowing AccessUnit) {
    let bytes = EncodedPicture(unit).annexB
    fwrite(bytes, 1, bytes.count, output)
  }
  func encode(_ picture: DecodedPicture) throws {
    // The encoder is made for the first picture's size.
    let made =
      try encoder
      ?? EncoderSelector.select(
        .auto, EncoderConfiguration(size: picture.size, frameRate: .thirty, bitrate: bitrate, color: picture.color)
      ).encoder
    encoder = made
    guard count < limit else { return }
    try made.encode(picture.frame, keyFrame: count.isMultiple(of: 60)) { write($0) }
    count += 1
  }
  func take(_ unit: EncodedPicture) throws { for picture in try decoder.decode(unit) { try encode(picture) } }
  // snippet.end

  if words[1].contains("://") {
    let receiver = try StreamReceiver(.rtsp(StreamURL(words[1])))
    let units = receiver.accessUnits(.newest(64))
    try receiver.start()
    for await unit in units where count < limit {
      do { try take(unit) } catch is DecoderError { receiver.requestKeyFrame() }
      if count >= limit { receiver.stop() }
    }
    if let failure = receiver.statistics.lastFailure, failure != .stopped { throw failure }
  } else {
    // snippet.read
    var reader = AnnexBReader()
    guard let input = fopen(words[1], "r") else {
      print("cannot read \(words[1])")
      exit(66)
    }
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while case let read = fread(&chunk, 1, chunk.count, input), read > 0 {
      for unit in reader.append(chunk[..<read]) { try take(unit) }
    }
    if let last = reader.finish() { try take(last) }
    // snippet.end
    try decoder.flush().forEach { try encode($0) }
  }
  try encoder?.flush { write($0) }
  guard fclose(output) == 0 else { exit(74) }
  print("\(count) pictures by \(encoder?.name ?? "no encoder"), decoded by \(decoder.selection)")
} catch {
  print("transcode: \(error)")
  exit(65)
}
