/// One H.264 encoder. Making one opens it; ``prepare()`` warms it up.
///
/// It is used by one thread at a time. Without lookahead one frame in gives one access unit out, or that in parts
/// (``EncoderConfiguration/streamsSlices``); with it the first frames give none, and ``flush(deliver:)`` the rest.
public protocol VideoEncoder: AnyObject, Sendable {
  /// What it makes; ``change(bitrate:frameRate:)`` is reflected in it.
  var configuration: EncoderConfiguration { get }
  /// What it is, for a person: `x264 build 164, ultrafast, 1 thread`.
  var name: String { get }
  /// The parameter sets of what it delivers next. They never change within one encoder; one that stands for several
  /// changes them at a key frame. A driver may write its own, which are known after ``prepare()``.
  var parameterSets: ParameterSets { get }
  /// The orientations that it lays frames by itself (``Frame/orientation``); may shrink with any frame. A frame of
  /// another one it refuses by ``EncoderError/notTurned(_:reason:)``, and nothing has happened then.
  var turns: OrientationSet { get }
  /// What happened within, for statistics. May be read by the thread that encodes alone.
  var counters: EncoderCounters { get }

  /// Encodes throw-away pictures, so that the first real frame costs no more than the ones that follow. What it
  /// encoded leaves no trace in the stream: the next picture is an IDR. Idempotent; after ``flush(deliver:)`` it warms
  /// up again what that has emptied.
  ///
  /// - Throws: ``EncoderError`` where the encoder does not do what it promised; it is to be stopped then.
  func prepare() throws(EncoderError)
  /// Encodes `frame` and lends what is ready to `sink` before it returns, which it does not keep. With `keyFrame` the picture is an
  /// IDR, and every IDR comes with the parameter sets: that is how a key frame is asked for.
  ///
  /// Parts of a picture may be lent from a thread of the encoder's own, one at a time and all before this returns.
  ///
  /// - Throws: ``EncoderError``; then `sink` was given nothing of this frame, or some of its parts and not the last.
  func encode(_ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink) throws(EncoderError)
  /// From the next frame on `bitrate` bits a second at `frameRate`, with neither an IDR nor new parameter sets.
  ///
  /// - Throws: ``EncoderError`` for an impossible value; then the old ones go on.
  func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError)
  /// From the next frame on x264's preset `x264Preset`, with neither an IDR nor new parameter sets. Where that cannot be
  /// done in a running encoder, nothing has happened and the answer is false: another encoder is needed. True where the
  /// preset means nothing to it.
  ///
  /// - Throws: ``EncoderError``; then the old one goes on.
  func change(x264Preset: String) throws(EncoderError) -> Bool
  /// Does with less from one of the next frames on, which it says by ``frameSize(for:)``.
  func restrict(_ restrictions: EncoderRestrictions)
  /// The size to which the next frame is to be scaled, if it has the size `laid` once it is laid: that one where nothing
  /// is restricted.
  func frameSize(for laid: PictureSize) -> PictureSize
  /// Lends what is still held back to `deliver`, in order. Frames may follow.
  ///
  /// - Throws: ``EncoderError``.
  func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError)
  /// Ends the encoder and frees its memory; nothing is delivered afterwards, and `encode` throws. Idempotent.
  func stop()
}

extension VideoEncoder {
  /// None: frames have to come as they are to be seen.
  public var turns: OrientationSet { [] }
  /// No: it has been opened with the one that it has.
  ///
  /// - Throws: Never.
  public func change(x264Preset: String) throws(EncoderError) -> Bool { false }
  /// Nothing: it is one encoder of one size.
  public func restrict(_ restrictions: EncoderRestrictions) {}
  /// The size that it has.
  public func frameSize(for laid: PictureSize) -> PictureSize { laid }
  /// Nothing to tell.
  public var counters: EncoderCounters { EncoderCounters() }
}

/// An encoder on hardware, in steps: only ``load(_:)`` touches a frame's memory, and it makes no call that could
/// hang. So a frame is never in the hands of a driver that does not come back, and the picture that it failed on can be
/// encoded again by another.
///
/// Order: `mapInput`, `load`, `encodeLoaded`, and again. `mapInput` and `encodeLoaded` call the driver and belong on a
/// thread that may get stuck; `load` may be called by another one, which is told of the end of `mapInput`.
/// ``VideoEncoder/encode(_:keyFrame:to:)`` does all three.
public protocol StagedVideoEncoder: VideoEncoder {
  /// Readies the memory that the next frame goes into. Nothing where that has been done already.
  ///
  /// - Throws: ``EncoderError``.
  func mapInput() throws(EncoderError)
  /// Copies `frame` into that memory, or notes its DMA-BUF where the driver reads that: then the frame is to be kept
  /// until `encodeLoaded` has returned, or what the hardware reads is another picture. Its addresses are not used after
  /// this call.
  ///
  /// - Throws: ``EncoderError`` for a frame of another size, or without ``mapInput()``.
  func load(_ frame: borrowing Frame) throws(EncoderError)
  /// Encodes what was loaded and lends the access unit to `deliver`.
  ///
  /// - Throws: ``EncoderError``; then `deliver` was not called. After ``EncoderError/importRefused(library:)`` the frame
  ///   may be loaded again, without `mapInput`, and is copied.
  func encodeLoaded(keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError)
}

/// What happened within an encoder since it was made.
public struct EncoderCounters: Hashable, Sendable {
  /// Frames that came by DMA-BUF, without a copy.
  public var imported = 0
  /// Frames that were copied into the encoder's memory.
  public var copied = 0
  /// Frames among both that the driver laid by ``Frame/orientation``.
  public var turned = 0
  /// Pictures that did not fit the coded buffer and were encoded again at a lower quality.
  public var overflows = 0
  /// Switches to the fall-back encoder, for whatever reason.
  public var failovers = 0
  /// Those among them because a driver did not answer.
  public var hangs = 0
  /// Switches back to the preferred encoder.
  public var recoveries = 0
  /// Switches to the encoder of the other orientation.
  public var switches = 0
  /// Switches to an encoder of another size or preset, because of ``EncoderRestrictions``.
  public var adaptations = 0

  /// Nothing yet.
  public init() {}

  /// Both, as of one encoder after the other, or of two that take turns.
  public static func + (left: EncoderCounters, right: EncoderCounters) -> EncoderCounters {
    var sum = left
    sum.imported += right.imported
    sum.copied += right.copied
    sum.turned += right.turned
    sum.overflows += right.overflows
    sum.failovers += right.failovers
    sum.hangs += right.hangs
    sum.recoveries += right.recoveries
    sum.switches += right.switches
    sum.adaptations += right.adaptations
    return sum
  }
}
