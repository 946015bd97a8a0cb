import Glibc
import Media
import Platform
import VAAPI

/// Encodes drawn pictures by VA-API and writes the stream, for tests: libva reads its environment once a process.
/// Prints `key=value` lines of what happened.
@main
enum VAEncodeTool {
  static func main() {
    do {
      try run(Options(Array(CommandLine.arguments.dropFirst())))
    } catch let error as EncoderError {
      print("error=\(error)")
      print("kind=\(error.kind)")
      exit(3)
    } catch {
      print("misuse=\(error)")
      exit(64)
    }
  }

  private static func run(_ options: Options) throws {
    if options.listsCapabilities { return try listCapabilities(options) }
    let encoder = try VAAPIEncoder(
      options.configuration, node: options.node, turns: options.orientation != nil)
    if options.prepares { try encoder.prepare() }
    print("name=\(encoder.name)")
    print("sps=\(hex(encoder.parameterSets.sequence))")
    print("pps=\(hex(encoder.parameterSets.picture))")
    let run = try EncodingRun(options, encoder)
    try run.encodeAll()
    try encoder.flush { _ in }
    print("keyframes=\(run.keyFrames.map(String.init).joined(separator: ","))")
    print("delivered=\(run.delivered)")
    print("bytes=\(run.bytes)")
    print("set-changes=\(run.setChanges)")
    print("turns=\(Orientation.all.filter { encoder.turns.contains($0) })")
    print("turned=\(encoder.counters.turned)")
    print("imported=\(encoder.counters.imported)")
    print("copied=\(encoder.counters.copied)")
    print("overflows=\(encoder.counters.overflows)")
    print("levels=\(encoder.qualityLevels.map(Self.text) ?? "none")")
    print("level-at-end=\(encoder.configuration.vaapiQuality ?? 0)")
    print("sets-at-end=\(hex(encoder.parameterSets.sequence))")
    run.report()
    encoder.stop()
    encoder.stop()
    if options.encodesAfterStop { try run.encode(0) }
    print("end=ok")
  }

  private static func listCapabilities(_ options: Options) throws {
    let capabilities = try VAAPICapabilities(of: RenderNode(path: options.node))
    print("vendor=\(capabilities.vendor)")
    print("processing=\(capabilities.hasVideoProcessing)")
    for encoder in capabilities.encoders {
      let modes = encoder.rateControls.map(\.rawValue).joined(separator: "+")
      let profile = encoder.profile.codec == .h264 ? encoder.profile.name : encoder.profile.description
      print(
        "encoder=\(profile) \(encoder.entryPoint.rawValue) \(modes) "
          + "packed:\(encoder.packedHeaders.rawValue) slices:\(encoder.slices) quality:\(encoder.qualityLevels) "
          + "\(encoder.minimumSize) \(encoder.maximumSize) import:\(encoder.importsDMABuffers)")
    }
  }

  private static func text(_ levels: QualityLevels) -> String {
    "\(levels.present ?? 0) of \(levels.count)\(levels.isFixed ? ", fixed" : "")"
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef")
    return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }
}

/// One stream in the making.
final class EncodingRun {
  private(set) var keyFrames: [Int] = []
  private(set) var delivered = 0
  private(set) var bytes = 0
  /// The number of SPS that came and are not the first one.
  private(set) var setChanges = 0
  private let options: Options
  private let encoder: VAAPIEncoder
  private let pool: FramePool
  private let exported: ExportedFrames?
  private let picture: MovingPicture
  private var firstSequence: [UInt8] = []
  private var meter = Meter()
  private let output: UnsafeMutablePointer<FILE>
  private let source: UnsafeMutablePointer<FILE>?

  init(_ options: Options, _ encoder: VAAPIEncoder) throws {
    self.options = options
    self.encoder = encoder
    let laid = options.frameSize ?? options.configuration.size
    let size = options.orientation?.size(of: laid) ?? laid
    picture = MovingPicture(size: size, noise: options.noise)
    pool = try FramePool(size: size)
    exported = options.exports ? ExportedFrames(size: size) : nil
    guard let file = fopen(options.output.isEmpty ? "/dev/null" : options.output, "w") else {
      throw Options.Misuse(text: "cannot write \(options.output)")
    }
    output = file
    source = options.source.flatMap { fopen($0, "w") }
  }

  deinit {
    fclose(output)
    if let source { fclose(source) }
  }

  func encodeAll() throws {
    for number in 0..<options.frames {
      if let change = options.change, change.frame == number, let rate = FrameRate(change.frameRate) {
        try encoder.change(bitrate: change.bitrate, frameRate: rate)
      }
      for change in options.qualityChanges where change.frame == number {
        encoder.change(vaapiQuality: change.level > 0 ? change.level : nil)
      }
      do {
        try encode(number)
      } catch let error as EncoderError where options.goesOn {
        print("failed=\(number) \(error)")
      }
    }
  }

  func encode(_ number: Int) throws {
    let time = Instant.zero + options.configuration.frameRate.time(ofFrame: Int64(number))
    var frame: Frame
    if let exported {
      frame = exported.frame(number, at: time)
    } else {
      guard let free = pool.checkout(color: .bt709, timestamp: time, captured: time) else {
        throw Options.Misuse(text: "no frame is free: the encoder keeps them")
      }
      frame = free
    }
    picture.draw(frame.planes, number: number)
    frame.orientation = options.orientation ?? .upright
    let isKey = options.keyInterval > 0 && number % options.keyInterval == 0
    if let skipped = options.skippedStep {
      if skipped != "mapInput" { try encoder.mapInput() }
      if skipped != "load" { try encoder.load(frame) }
      try encoder.encodeLoaded(keyFrame: isKey) { unit in write(unit, number) }
    } else if meter != nil {
      try encodeMeasured(frame, keyFrame: isKey, number)
    } else {
      try encoder.encode(frame, keyFrame: isKey) { unit in write(unit, number) }
    }
    keep(frame.planes)
  }

  /// The same step by step, without the copy of the picture, which `load` is.
  private func encodeMeasured(_ frame: borrowing Frame, keyFrame: Bool, _ number: Int) throws {
    guard let meter else { return }
    meter.resume()
    try encoder.mapInput()
    meter.pause()
    try encoder.load(frame)
    meter.resume()
    try encoder.encodeLoaded(keyFrame: keyFrame) { unit in
      meter.pause()
      write(unit, number)
      meter.resume()
    }
    meter.pause()
    self.meter?.endFrame()
  }

  func report() {
    meter?.report()
  }

  private func write(_ unit: borrowing AccessUnit, _ number: Int) {
    delivered += 1
    if unit.isKeyFrame { keyFrames.append(number) }
    for nalUnit in unit.nalUnits {
      if options.configuration.codec.role(of: nalUnit) == .parameterSet(.sequence) {
        if firstSequence.isEmpty { firstSequence = Array(nalUnit.bytes) }
        if !nalUnit.bytes.elementsEqual(firstSequence) { setChanges += 1 }
      }
      bytes += nalUnit.bytes.count
      _ = AnnexB.startCode.withUnsafeBytes { fwrite($0.baseAddress, 1, 4, output) }
      fwrite(nalUnit.bytes.baseAddress, 1, nalUnit.bytes.count, output)
    }
  }

  private func keep(_ planes: NV12Planes) {
    guard let source else { return }
    for row in 0..<planes.size.height {
      fwrite(planes.luma + row * planes.lumaStride, 1, planes.size.width, source)
    }
    for row in 0..<planes.size.height / 2 {
      fwrite(planes.chroma + row * planes.chromaStride, 1, planes.size.width, source)
    }
  }
}
