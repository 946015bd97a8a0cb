#if X264
  import Capture
  import Encoding
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing

  import Streaming

  /// A camera whose pictures no encoder makes small: noise.
  final class NoisyCamera: VideoSource, @unchecked Sendable {
    // Sendable: the capture thread alone uses what changes.
    let format: SourceFormat
    let name = "noise"
    let isLive = true
    let orientation = Orientation.upright
    let turningFailure: (any Failure)? = nil
    private let pool: FramePool
    private var due: Instant?
    private var random: UInt64 = 1

    init(size: PictureSize) throws {
      format = SourceFormat(size: size, frameRate: .thirty, pixelFormat: .nv12, color: .bt709, conversion: "no copy")
      pool = try FramePool(size: size)
    }

    func start() throws {}
    func stop() {}
    func orient(_ orientation: Orientation) {}
    func prepareTurning() throws {}

    func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
      let time = due.map { max($0, .now() - .milliseconds(20)) } ?? .now()
      due = time + FrameRate.thirty.interval
      guard interrupt.wait(until: time) else { return .idle }
      guard let frame = pool.checkout(color: .bt709, timestamp: time, captured: time) else {
        return .dropped(.poolExhausted, count: 1)
      }
      let planes = frame.planes
      for row in 0..<planes.size.height {
        let start = UnsafeMutableRawPointer(planes.luma + row * planes.lumaStride)
        for column in stride(from: 0, to: planes.size.width, by: 8) {
          random ^= random << 13
          random ^= random >> 7
          random ^= random << 17
          start.storeBytes(
            of: random & 0x3f3f_3f3f_3f3f_3f3f | 0x4040_4040_4040_4040, toByteOffset: column, as: UInt64.self)
        }
      }
      return .frame(frame)
    }
  }

  /// A pipeline with a small rendition, and viewers on networks of the test's own.
  final class RenditionBench {
    let pipeline: Pipeline
    private(set) var viewers: [ViewerID] = []

    init(
      _ source: any VideoSource, bitrate: Int, small: Pipeline.MakeRenditionEncoder? = RenditionBench.encoder,
      keyFrameInterval: Double = 1
    ) throws {
      let configuration = EncoderSettings().configuration(
        size: source.format.size, frameRate: .thirty, bitrate: bitrate, color: .bt709, processors: 1)
      let selection = try EncoderSelector.select(.x264, configuration, aspects: .both)
      pipeline = try Pipeline(
        source: source, encoder: selection.encoder, destinations: [],
        keyFrameInterval: Duration(seconds: keyFrameInterval), smallEncoder: small)
      try pipeline.start()
    }

    deinit { end() }

    static let encoder: Pipeline.MakeRenditionEncoder = { try EncoderSelector.selectSmall(.x264, $0) }

    func end() {
      pipeline.stop()
      _ = pipeline.waitUntilEnd()
    }

    @discardableResult
    func admit(
      _ connection: NarrowConnection, stream: ProtectedStream? = nil, at place: GuestPlace? = nil,
      isReturning: Bool = false
    ) throws -> ViewerID {
      let transport = try #require(connection.transport)
      let id = try pipeline.admit(
        .interleaved(transport), name: "viewer", stream: stream, isReturning: isReturning, place: place
      ) { _ in }
      viewers.append(id)
      return id
    }

    func figures(_ id: ViewerID) -> DestinationStatistics? { pipeline.statistics(of: id) }

    /// `true` if the viewer gets small pictures.
    func isSmall(_ id: ViewerID) -> Bool { figures(id)?.smallHeight != nil }

    /// Waits until that many pictures in a row have left small; false where that does not come. On a busy machine,
    /// which shows few limits of a network in a while, a try of full pictures may come first.
    func sendsSmall(_ id: ViewerID, _ frames: Int) -> Bool {
      var start: (frames: Int, changes: Int)?
      return eventually(within: 240) {
        guard let present = figures(id), present.smallHeight != nil else {
          start = nil
          return false
        }
        guard let begun = start, begun.changes == present.renditionChanges else {
          start = (present.frames, present.renditionChanges)
          return false
        }
        return present.frames > begun.frames + frames
      }
    }
  }

  extension ReceivedPictures {
    /// Decodes the pictures by ffmpeg, without scaling them to one size. Returns the bytes of each one in order.
    func sizes() throws -> [Int] {
      let directory = try TemporaryDirectory()
      let path = try directory.write(stream, as: "stream.h264")
      let result = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "warning", "-threads", "1", "-f", "h264", "-i", path, "-autoscale", "0",
          "-fps_mode",
          "passthrough", "-f", "framecrc", "-",
        ], in: directory)
      #expect(result.status == 0)
      let complaints = result.error.split(separator: "\n").filter {
        !$0.contains("unknown timestamps") && !$0.contains("set_timestamps")
      }
      #expect(complaints.isEmpty, "\(complaints.prefix(20))")
      return try result.outputText.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
        let fields = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        return try #require(fields.count > 4 ? Int(fields[4]) : nil, "\(line)")
      }
    }
  }
#endif
