// encode-y4m CLIP.y4m OUT.h264 [BITRATE]: encodes a clip with the best encoder of this machine, as an Annex B stream.
import Capture
import Encoding
import Glibc
import Media
import Platform

guard CommandLine.arguments.count >= 3 else {
  print("usage: encode-y4m CLIP.y4m OUT.h264 [BITS A SECOND]")
  exit(64)
}

do {
  // The source tells its size, rate and colours; the encoder is made for them.
  let clip = try Y4MFile(path: CommandLine.arguments[1], pacing: .maximum, loops: 1)
  let bitrate = CommandLine.arguments.dropFirst(3).first.flatMap { Int($0) }
  let encoder = try EncoderSelector.select(
    .auto,
    EncoderConfiguration(
      size: clip.format.size, frameRate: clip.format.frameRate,
      bitrate: bitrate ?? BitrateLadder.bitrate(for: clip.format.size, at: clip.format.frameRate),
      color: clip.format.color)
  ).encoder
  guard let output = fopen(CommandLine.arguments[2], "w") else {
    print("cannot write \(CommandLine.arguments[2])")
    exit(73)
  }

  // snippet.write
  // The access unit's bytes are lent: they are the encoder's own and gone after the call.
  func write(_ unit: borrowing AccessUnit) {
    for nalUnit in unit.nalUnits {
      fwrite(AnnexB.startCode, 1, AnnexB.startCode.count, output)
      fwrite(nalUnit.bytes.baseAddress, 1, nalUnit.bytes.count, output)
    }
  }
  // snippet.end

  // snippet.encode
  // A key frame every two seconds, by time.
  var keyFrames = KeyFrameClock(interval: Duration(seconds: 2))
  var count = 0
  let interrupt = try Interrupt()
  try clip.start()
  reading: while true {
    switch try clip.next(interrupt: interrupt) {
    case .frame(let frame):
      let isDue = keyFrames.isDue(at: frame.timestamp, frameInterval: clip.format.frameRate.interval)
      try encoder.encode(frame, keyFrame: isDue) { unit in
        write(unit)
        count += 1
      }
      if isDue { keyFrames.keyFrameDelivered(at: frame.timestamp) }
    case .dropped: continue
    case .idle: continue
    case .ended: break reading
    }
  }
  try encoder.flush { unit in
    write(unit)
    count += 1
  }
  encoder.stop()
  // snippet.end
  guard fclose(output) == 0 else {
    print("cannot write all of \(CommandLine.arguments[2])")
    exit(74)
  }
  print("\(count) pictures by \(encoder.name)")
} catch {
  print("encode-y4m: \(error)")
  exit(65)
}
