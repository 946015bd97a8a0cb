#if X264
  import Capture
  import Encoding
  import Foundation
  import Serving
  import Media
  import Platform
  import RTP
  import Streaming
  import TestSupport
  import Testing

  /// A camera that is served by RTSP in the test's own process.
  final class ServedCamera {
    let pipeline: Pipeline
    let server: RTSPServer

    /// Serves a camera of 320x240, a synthetic one unless given, on a port of the system's choice, with a key frame at
    /// the start and for who asks.
    init(
      source: (any VideoSource)? = nil, furtherTracks: [TrackFormat] = [], bitrate: Int = 500_000, rests: Bool = true,
      _ configure: (inout RTSPServerConfiguration) -> Void = { _ in }
    ) throws {
      pipeline = try Self.pipeline(source: source, furtherTracks: furtherTracks, bitrate: bitrate, rests: rests)
      var configuration = RTSPServerConfiguration(listeners: [.init(address: "127.0.0.1", port: 0)])
      // Tests compare what the answer says about the first packet, also on a busy machine.
      configuration.startPatience = Duration(seconds: 60)
      configure(&configuration)
      do {
        server = try RTSPServer(configuration, presentations: [Presentation(name: "camera", pipeline: pipeline)])
      } catch {
        pipeline.stop()
        _ = pipeline.waitUntilEnd()
        throw error
      }
    }

    /// A camera that runs; of 320x240 unless told.
    static func pipeline(
      _ size: PictureSize = PictureSize(width: 320, height: 240), source: (any VideoSource)? = nil,
      furtherTracks: [TrackFormat] = [], bitrate: Int = 500_000, rests: Bool = true
    ) throws -> Pipeline {
      let camera = try source ?? SyntheticCamera(size: size, frameRate: .thirty)
      let encoder = try EncoderSelector.select(
        .x264,
        EncoderSettings().configuration(
          size: size, frameRate: .thirty, bitrate: bitrate, color: .bt709, processors: 1), node: nil
      ).encoder
      let pipeline = try Pipeline(
        source: camera, encoder: encoder, destinations: [], furtherTracks: furtherTracks,
        keyFrameInterval: Duration(seconds: 600), restsUnwatched: rests)
      try pipeline.start()
      return pipeline
    }

    deinit {
      server.stop()
      pipeline.stop()
      _ = pipeline.waitUntilEnd()
    }

    var port: Int { server.listeners[0].port }

    func client(
      from source: String? = nil, host: String = "127.0.0.1", receiveBuffer: Int32? = nil
    ) throws -> RTSPClient {
      try RTSPClient(host: host, port: port, from: source, receiveBuffer: receiveBuffer)
    }

    /// Waits until there are so many sessions.
    func settles(sessions: Int, within limit: Double = 30) throws -> Bool {
      try eventually(within: limit) { try server.statistics().sessions == sessions }
    }
  }

  extension Pipeline {
    /// Frames that the pipeline says its viewers of now did not get: where a machine does not let the server's thread
    /// write to a connection for three frame intervals, the next frames go by.
    var missedFrames: Int { statistics.destinations.reduce(0) { $0 + $1.framesDropped } }
  }

  /// RTP packets that a viewer got.
  struct ReceivedStream {
    /// Its first packet's.
    let first: (sequence: UInt16, timestamp: UInt32)
    /// The number of places where the sequence numbers are not consecutive.
    let gaps: Int
    private let stream: Data

    init(_ packets: [Data]) throws {
      var depacketizer = H264Depacketizer()
      var first: (sequence: UInt16, timestamp: UInt32)?
      var last: UInt16?
      var (stream, gaps) = (Data(), 0)
      for packet in packets {
        try packet.withUnsafeBytes { bytes in
          let parsed = try RTPPacket(parsing: bytes)
          let header = parsed.header
          if first == nil { first = (header.sequenceNumber, header.timestamp) }
          if let last, header.sequenceNumber != last &+ 1 { gaps += 1 }
          last = header.sequenceNumber
          try depacketizer.receive(bytes) { unit in stream.append(contentsOf: unit.annexB) }
        }
      }
      self.first = try #require(first, "no packet")
      self.stream = stream
      self.gaps = gaps
    }

    /// The types of its NAL units, those in fragments and aggregates too.
    var types: [UInt8] {
      // Annex B has four bytes or three before each unit.
      stream.enumerated().dropFirst(3).compactMap { index, byte in
        let isFirst = byte & 0x80 == 0 && stream[index - 1] == 1 && stream[index - 2] == 0 && stream[index - 3] == 0
        return isFirst ? byte & 31 : nil
      }
    }

    /// Returns ffmpeg's view of it.
    func probe() throws -> StreamProbe { try StreamProbe(stream) }

    /// Expects that it begins with parameter sets and a key frame, and that ffmpeg decodes it without complaint.
    ///
    /// - Parameter missed: The number of frames that may be missing, which are those that the pipeline tells of.
    func expectDecodable(missed: Int = 0, sourceLocation: SourceLocation = #_sourceLocation) throws {
      #expect(gaps <= missed, sourceLocation: sourceLocation)
      let types = types
      let leading = types.prefix { $0 > 5 }
      #expect(leading.contains(7) && leading.contains(8), "\(types.prefix(8))", sourceLocation: sourceLocation)
      #expect(types.dropFirst(leading.count).first == 5, "\(types.prefix(8))", sourceLocation: sourceLocation)
      let probe = try probe()
      #expect(probe.frames > 0, sourceLocation: sourceLocation)
      #expect(probe.complaints.isEmpty, "\(probe.complaints)", sourceLocation: sourceLocation)
    }
  }
#endif
