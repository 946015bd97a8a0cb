import Capture
import Encoding
import Foundation
import Media
import Platform
import RTP
import Streaming
import Synchronization
import TestSupport
import Testing

/// An encoder whose pictures are those of a clip of HEVC, each a key frame.
private final class ClipEncoder: VideoEncoder, @unchecked Sendable {
  // Sendable: the encode stage alone uses `count`.
  let configuration: EncoderConfiguration
  let name = "clip encoder"
  let parameterSets: ParameterSets
  private let pictures: [[[UInt8]]]
  private let writesSets: Bool
  private var count = 0

  /// - Parameter writesSets: `true` if the first picture has the parameter sets. No other one has.
  init(_ clip: HEVCClip, writesSets: Bool = false) throws {
    self.writesSets = writesSets
    parameterSets = try #require(clip.parameterSets)
    pictures = try clip.packets()
    configuration = EncoderConfiguration(
      size: PictureSize(width: 64, height: 64), frameRate: .thirty, bitrate: 1_000_000, color: .bt709)
  }

  func prepare() throws(EncoderError) {}
  func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {}
  func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {}
  func stop() {}

  func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    let (timestamp, captured) = (frame.timestamp, frame.captured)
    // The sets are left out: the send stage has them.
    let slices = pictures[count % pictures.count].filter { HEVCClip.type($0) < 32 }
    let units = writesSets && count == 0 ? parameterSets.nalUnits + slices : slices
    count += 1
    withNALUnits(units) {
      sink.take(AccessUnit(nalUnits: $0, isKeyFrame: true, timestamp: timestamp, captured: captured))
    }
  }
}

/// A pipeline whose encoder makes HEVC.
@Suite struct HEVCPipelineTests {
  private static func pipeline(_ clip: HEVCClip, to destinations: [StreamDestination]) throws -> Pipeline {
    try Pipeline(
      source: SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty),
      encoder: ClipEncoder(clip), destinations: destinations, keyFrameInterval: Duration(seconds: 1))
  }

  private static func clip() throws -> HEVCClip { try HEVCClip(size: "320x192", frames: 8, "keyint=1:slices=2") }

  @Test func `destinations get HEVC and its description, in RTP and in a transport stream`() throws {
    let clip = try Self.clip()
    let sets = try #require(clip.parameterSets)
    let (plain, transport) = (try DatagramRecorder(), try DatagramRecorder())
    let pipeline = try Self.pipeline(
      clip,
      to: [
        StreamDestination(host: "127.0.0.1", port: plain.port, maximumPacketSize: 500),
        StreamDestination(host: "127.0.0.1", port: transport.port, payload: .mp2t),
      ])
    #expect(pipeline.codec == .hevc)
    #expect(pipeline.destinations.map(\.payload) == [.hevc, .mp2t.with(codec: .hevc)])
    let text = try #require(pipeline.sessionDescription(for: pipeline.destinations[0].id, sessionID: 1)).text
    #expect(DescriptionLines(text).attributes("rtpmap") == ["99 H265/90000"], "\(text)")
    #expect(text.contains("sprop-vps=\(Base64.encode(sets.video));"), "\(text)")
    let guests = pipeline.sessionDescription(forGuestsAt: .loopback, name: "camera", sessionID: 1).text
    #expect(guests.contains("H265/90000") && guests.contains("sprop-sps=\(Base64.encode(sets.sequence));"), "\(guests)")
    try pipeline.start()
    #expect(eventually { plain.timestampCount >= 20 && transport.timestampCount >= 20 })
    pipeline.stop()
    _ = pipeline.waitUntilEnd()

    var depacketizer = HEVCDepacketizer()
    var units: [[[UInt8]]] = []
    for datagram in plain.finish() where datagram.count > 12 && datagram[1] & 0x7f == RTPPayloadType.hevc.rawValue {
      try [UInt8](datagram).withUnsafeBytes { bytes in
        try depacketizer.receive(bytes) { unit in units.append((0..<unit.count).map { Array(unit[$0]) }) }
      }
    }
    #expect(units.count >= 20)
    // Each key frame has the sets before it.
    #expect(units.allSatisfy { $0.prefix(3).elementsEqual(sets.nalUnits) && $0.count == 5 })
    let first = try HEVCClip.checksums(of: units.prefix(8).flatMap(\.self).flatMap { AnnexB.startCode + $0 })
    #expect(try Set(first) == Set(HEVCClip.checksums(of: clip.stream)) && first.count == 8)

    let stream = transport.finish().filter { $0.count > 12 && $0[1] & 0x7f == 33 }.flatMap { $0.dropFirst(12) }
    let path = try clip.directory.write(stream, as: "stream.ts")
    let probed = try Subprocess.run(
      ["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0", path],
      in: clip.directory)
    #expect(probed.outputText.contains("hevc,320,192"), "\(probed.outputText)\(probed.error)")
  }

  @Test func `small pictures have the sets before each key frame, of which their encoder writes the first alone`()
    throws
  {
    let (clip, smallClip) = (try Self.clip(), try HEVCClip(size: "64x64", frames: 8, "keyint=1:qp=40"))
    let sets = try #require(smallClip.parameterSets)
    let pipeline = try Pipeline(
      source: SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty), encoder: ClipEncoder(clip),
      destinations: [], keyFrameInterval: Duration(seconds: 1)
    ) { _ in try ClipEncoder(smallClip, writesSets: true) }
    try pipeline.start()
    defer {
      pipeline.stop()
      _ = pipeline.waitUntilEnd()
    }
    let weak = try NarrowConnection()
    let id = try pipeline.admit(.interleaved(try #require(weak.transport)), name: "viewer", stream: nil) { _ in }
    func frames() -> Int { Int(pipeline.statistics(of: id)?.frames ?? 0) }
    try #require(eventually { frames() > 30 })
    weak.rate = 150_000
    try #require(eventually { pipeline.statistics(of: id)?.smallHeight != nil })
    let begun = frames()
    try #require(eventually { frames() > begun + 60 })
    pipeline.stop()
    _ = pipeline.waitUntilEnd()

    let slices = Set(smallClip.nalUnits.filter { HEVCClip.type($0) < 32 })
    var depacketizer = HEVCDepacketizer()
    var units: [[[UInt8]]] = []
    for packet in weak.packets where packet[1] & 0x7f == RTPPayloadType.hevc.rawValue {
      try packet.withUnsafeBytes { bytes in
        try depacketizer.receive(bytes) { unit in units.append((0..<unit.count).map { Array(unit[$0]) }) }
      }
    }
    let small = units.filter { $0.contains(where: slices.contains) }
    #expect(small.count >= 30)
    #expect(small.allSatisfy { $0.count == 4 && $0.prefix(3).elementsEqual(sets.nalUnits) })
  }

  @Test func `a destination is found by either spelling of the codec's payload`() throws {
    let (clip, port) = (try Self.clip(), try UDPPort.free())
    func destination(_ query: String) throws -> StreamDestination {
      try StreamDestination(url: "rtp://127.0.0.1:\(port)\(query)")
    }
    for present in ["", "?payload=hevc"] {
      let pipeline = try Self.pipeline(clip, to: [destination(present)])
      for query in ["", "?payload=hevc"] {
        let there = try #require(pipeline.destinations.first).id
        #expect(try pipeline.destination(matching: destination(query))?.id == there, "\(query)")
      }
      for query in ["?payload=h264", "?payload=mp2t", "?ttl=4"] {
        #expect(try pipeline.destination(matching: destination(query))?.id == nil, "\(query)")
      }
    }
    for present in ["", "?payload=h264"] {
      let running = try RunningPipeline(SizedEncoder(keyBytes: 100, bytes: 100), to: [destination(present)])
      let there = try #require(running.pipeline.destinations.first).id
      for query in ["", "?payload=h264"] {
        #expect(try running.pipeline.destination(matching: destination(query))?.id == there, "\(query)")
      }
      #expect(try running.pipeline.destination(matching: destination("?payload=hevc"))?.id == nil)
    }
  }

  @Test func `a destination that names the payload of another codec is refused`() throws {
    let clip = try Self.clip()
    let port = try UDPPort.free()
    let pipeline = try Self.pipeline(clip, to: [])
    for (name, isTaken) in [("h264", false), ("hevc", true)] {
      let destination = try StreamDestination(url: "rtp://127.0.0.1:\(port)?payload=\(name)")
      do {
        try pipeline.add(destination)
        #expect(isTaken)
      } catch let error as StreamDestinationError {
        #expect(
          error.description
            == "rtp://127.0.0.1:\(port)?payload=h264: its payload is H.264, and the pictures are HEVC: leave payload= out"
        )
        #expect(!isTaken && !error.mayPass)
      }
    }
  }
}
