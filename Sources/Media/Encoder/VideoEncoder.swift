/// A video encoder. Creating one opens it; ``prepare()`` warms it up.
///
/// One thread at a time uses an encoder. Without lookahead, each frame gives one access unit, or its parts
/// (``EncoderConfiguration/streamsSlices``). With lookahead, the first frames give none, and ``flush(deliver:)``
/// delivers the rest.
public protocol VideoEncoder: AnyObject, Sendable {
  /// The current configuration, including changes by ``change(bitrate:frameRate:)``.
  var configuration: EncoderConfiguration { get }
  /// The encoder's name for people: `x264 build 164, ultrafast, 1 thread`.
  var name: String { get }
  /// The parameter sets of the next pictures. They never change within one encoder; an encoder that wraps several
  /// changes them at a key frame. A driver may write its own, which are known after ``prepare()``.
  var parameterSets: ParameterSets { get }
  /// The orientations that the encoder applies by itself (``Frame/orientation``); the set may shrink with any frame.
  /// The encoder refuses a frame of another orientation with ``EncoderError/notTurned(_:reason:)`` and stays unchanged.
  var turns: OrientationSet { get }
  /// The encoder's counters, for statistics. Only the thread that encodes may read them.
  var counters: EncoderCounters { get }
  /// The growth of the process's resident memory from creating standby encoders, in bytes; nil if none were created.
  /// Any thread may read it.
  var standbyMemory: Int? { get }

  /// Encodes throw-away pictures, so that the first real frame costs no more than later ones. These pictures leave no
  /// trace in the stream: the next picture is an IDR picture. Idempotent; after ``flush(deliver:)`` it warms the
  /// encoder up again.
  ///
  /// - Throws: ``EncoderError`` if the encoder does not work as promised; the caller must stop it then.
  func prepare() throws(EncoderError)
  /// Encodes `frame` and lends the finished access units to `sink` before it returns; it does not keep `sink`. With
  /// `keyFrame` the picture is an IDR picture. Every IDR picture is preceded by the parameter sets.
  ///
  /// A thread of the encoder may lend parts of a picture, one at a time and all of them before this function returns.
  ///
  /// - Throws: ``EncoderError``; then `sink` received nothing of this frame, or some of its parts but not the last.
  func encode(_ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink) throws(EncoderError)
  /// Changes bitrate (bits a second) and frame rate from the next frame on, with neither an IDR picture nor new
  /// parameter sets.
  ///
  /// - Throws: ``EncoderError`` for an impossible value; then the old values stay in effect.
  func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError)
  /// Changes the effort for a picture from the next frame on, with neither an IDR picture nor new parameter sets. Nil
  /// restores the configuration's original effort. Returns `true` also if the encoder has no effort to change. Returns
  /// `false` if a running encoder cannot change its effort: nothing has changed, and the caller needs another encoder.
  ///
  /// - Throws: ``EncoderError``; then the old effort stays in effect.
  func change(effort: EncodingEffort?) throws(EncoderError) -> Bool
  /// Applies `restrictions` from one of the next frames on; ``frameSize(for:)`` shows when.
  func restrict(_ restrictions: EncoderRestrictions)
  /// Returns the size to which the caller must scale the next frame, whose rotated size is `rotated`; `rotated` itself
  /// without restrictions.
  func frameSize(for rotated: PictureSize) -> PictureSize
  /// Lends the access units that are still held back to `deliver`, in order. Frames may follow.
  ///
  /// - Throws: ``EncoderError``.
  func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError)
  /// Stops the encoder and frees its memory. Nothing is delivered afterwards, and `encode` throws. Idempotent.
  func stop()
}

extension VideoEncoder {
  /// The empty set: the caller must rotate frames.
  public var turns: OrientationSet { [] }
  /// Returns `false`: the encoder keeps the effort that it was opened with.
  ///
  /// - Throws: Never.
  public func change(effort: EncodingEffort?) throws(EncoderError) -> Bool { false }
  /// Does nothing: a single encoder has one size.
  public func restrict(_ restrictions: EncoderRestrictions) {}
  /// Returns the encoder's own size.
  public func frameSize(for rotated: PictureSize) -> PictureSize { rotated }
  /// Zero for every counter.
  public var counters: EncoderCounters { EncoderCounters() }
  /// Nil: the encoder has no standby encoder.
  public var standbyMemory: Int? { nil }
}

/// A hardware encoder that works in steps. Only ``load(_:)`` touches a frame's memory, and it makes no call that could
/// hang. So a hung driver never holds a frame, and another encoder can encode the picture again.
///
/// The order is `mapInput`, `load`, `encodeLoaded`, and again. `mapInput` and `encodeLoaded` call the driver and belong
/// on a thread that may hang. Another thread may call `load` once `mapInput` has returned.
/// ``VideoEncoder/encode(_:keyFrame:to:)`` runs all three.
public protocol StagedVideoEncoder: VideoEncoder {
  /// Prepares the memory for the next frame. Does nothing if the memory is ready.
  ///
  /// - Throws: ``EncoderError``.
  func mapInput() throws(EncoderError)
  /// Copies `frame` into the prepared memory, or notes its DMA-BUF if the driver reads it directly. In that case the
  /// caller must keep the frame until `encodeLoaded` has returned; otherwise the hardware reads another picture. The
  /// frame's addresses are not used after this call.
  ///
  /// - Throws: ``EncoderError`` for a frame of another size, or without ``mapInput()``.
  func load(_ frame: borrowing Frame) throws(EncoderError)
  /// Encodes the loaded frame and lends the access unit to `deliver`.
  ///
  /// - Throws: ``EncoderError``; then `deliver` was not called. After ``EncoderError/importRefused(library:)`` the
  ///   caller may load the frame again, without `mapInput`; the encoder then copies it.
  func encodeLoaded(keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError)
  /// The quality levels of the hardware; nil if there are none to choose from.
  var qualityLevels: QualityLevels? { get }
  /// Requests another quality level; nil for the driver's own choice. A faster level begins with the next picture, which becomes a
  /// key frame. A better level begins with the next key frame that is due, after ten seconds of frames at the latest. A level beyond the
  /// last one means the last one. Does nothing if there are no levels, or ``QualityLevels/isFixed`` is `true`.
  func change(vaapiQuality level: Int?)
}

extension StagedVideoEncoder {
  /// Nil: the hardware has one level.
  public var qualityLevels: QualityLevels? { nil }
  /// Does nothing.
  public func change(vaapiQuality level: Int?) {}
}

/// Counters of an encoder since its creation.
public struct EncoderCounters: Hashable, Sendable {
  /// The number of frames that came by DMA-BUF, without a copy.
  public var imported = 0
  /// The number of frames that were copied into the encoder's memory.
  public var copied = 0
  /// The number of imported and copied frames that the driver rotated by ``Frame/orientation``.
  public var turned = 0
  /// The number of pictures that did not fit the coded buffer and were encoded again at a lower quality.
  public var overflows = 0
  /// The number of switches to the fallback encoder, for any reason.
  public var failovers = 0
  /// The number of switches to the fallback encoder because a driver did not answer.
  public var hangs = 0
  /// The number of switches back to the preferred encoder.
  public var recoveries = 0
  /// The number of switches to the encoder of the other orientation.
  public var switches = 0
  /// The number of changes to another size, preset, threads or quality level, because of ``EncoderRestrictions``.
  public var adaptations = 0
  /// The number of pictures that the camera coded and the encoder passed on.
  public var passed = 0
  /// The number of pictures that the camera coded and no decoder could show.
  public var undecodable = 0
  /// The number of switches between the camera's own pictures and pictures encoded by nightjar.
  public var handovers = 0

  /// Creates counters of zero.
  public init() {}

  /// Returns the sums of both encoders' counters.
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
    sum.passed += right.passed
    sum.undecodable += right.undecodable
    sum.handovers += right.handovers
    return sum
  }
}
