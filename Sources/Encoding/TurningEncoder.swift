public import Media
import PixelConversion

/// An encoder that takes frames in any orientation: what the one within does not lay by itself is laid here, on the
/// CPU, before it gets the frame. So a driver whose video processing fails loses no frame.
///
/// It tells a ``/Media/TurnOffer`` what the one within lays. Whoever makes the frames should lay the others, which
/// costs less than here; this is for those that were on their way.
public final class TurningEncoder: VideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands.

  private let encoder: any VideoEncoder
  private let offer: TurnOffer
  /// One frame: it is encoded as soon as it is laid.
  private var pool: FramePool?
  /// As ``Orientation/all``.
  private var converters: [PixelConverter?] = Array(repeating: nil, count: Orientation.all.count)

  /// Frames for `encoder`, which ends with this one; `offer` is told what it lays, from its preparation on.
  public init(_ encoder: any VideoEncoder, offer: TurnOffer) {
    self.encoder = encoder
    self.offer = offer
  }

  /// That of the encoder within.
  public var configuration: EncoderConfiguration { encoder.configuration }
  /// That of the encoder within.
  public var name: String { encoder.name }
  /// Those of the encoder within.
  public var parameterSets: ParameterSets { encoder.parameterSets }
  /// Those of the encoder within.
  public var counters: EncoderCounters { encoder.counters }
  /// All eight: what the one within does not lay is laid here.
  public var turns: OrientationSet { OrientationSet(rawValue: .max) }

  /// Warms up the encoder within, and readies memory for one frame that is laid here.
  ///
  /// - Throws: ``/Media/EncoderError`` as that encoder does, or ``/Media/EncoderError/unavailable(_:)`` where memory is
  ///   short.
  public func prepare() throws(EncoderError) {
    try encoder.prepare()
    do {
      if pool == nil { pool = try FramePool(size: configuration.size, capacity: 1) }
      for orientation in Orientation.all where orientation != .upright && converters[orientation.index] == nil {
        converters[orientation.index] = try PixelConverter(
          from: .nv12, size: orientation.size(of: configuration.size), orientation: orientation)
      }
    } catch {
      throw .unavailable("no memory to turn pictures: \(error)")
    }
    tell()
  }

  /// Encodes `frame`; see ``/Media/VideoEncoder``. The encoder within gets it as it is, or laid.
  ///
  /// - Throws: ``/Media/EncoderError`` as that encoder does.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    defer { tell() }
    guard frame.orientation != .upright else {
      return try encoder.encode(frame, keyFrame: keyFrame, to: sink)
    }
    if encoder.turns.contains(frame.orientation) {
      do throws(EncoderError) {
        return try encoder.encode(frame, keyFrame: keyFrame, to: sink)
      } catch {
        guard case .notTurned = error else { throw error }
      }
    }
    let laid = try lay(frame)
    try encoder.encode(laid, keyFrame: keyFrame, to: sink)
  }

  /// Changes the encoder within; see ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError`` as that encoder does.
  public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    try encoder.change(bitrate: bitrate, frameRate: frameRate)
  }

  /// Changes the encoder within; see ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError`` as that encoder does.
  public func change(x264Preset: String) throws(EncoderError) -> Bool {
    try encoder.change(x264Preset: x264Preset)
  }

  /// Lends what the encoder within holds back.
  ///
  /// - Throws: ``/Media/EncoderError`` as that encoder does.
  public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    try encoder.flush(deliver: deliver)
  }

  /// Ends the encoder within.
  public func stop() {
    offer.set([], for: configuration.size)
    encoder.stop()
  }

  private func tell() {
    offer.set(encoder.turns, for: configuration.size)
  }

  /// `frame`, laid.
  private func lay(_ frame: borrowing Frame) throws(EncoderError) -> Frame {
    try frame.check(for: configuration.size)
    if pool == nil { try prepare() }
    let checkout = pool?.checkout(color: frame.color, timestamp: frame.timestamp, captured: frame.captured)
    guard let laid = checkout, let converter = converters[frame.orientation.index] else {
      throw .notTurned(frame.orientation, reason: "no frame is free for it")
    }
    do throws(ConversionError) {
      try converter.convert(SourcePicture(frame.planes), into: laid.planes)
    } catch {
      throw .notTurned(frame.orientation, reason: error.description)
    }
    return laid
  }
}
