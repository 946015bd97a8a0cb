public import Adaptors
public import Media
public import Platform
import Synchronization

/// A decoder of H.264 and HEVC. Access units go in, NV12 pictures come out, each to any number of subscribers.
///
///     let decoder = try VideoDecoder(configuration: .init())
///     let pictures = decoder.decodedFrames(.newest(2))
///     for await unit in units { try decoder.decode(unit) }
///
/// Hardware decodes where a driver does (VA-API), software otherwise; ``selection`` says why. A picture comes out with its
/// own access unit, unless the stream itself reorders pictures. A decoder follows the codec of its access units: with the first
/// one of another codec it begins anew.
///
/// No driver tells that a picture lost its last slices. Streams whose pictures have several slices are therefore decoded in
/// software. If nobody marks the loss, and every picture since the last new SPS lost all slices but its first, hardware shows what
/// is left.
///
/// The input counts as hostile. Sizes are checked before memory is taken. A picture that is damaged, of which a slice is missing,
/// or whose reference is missing, is never delivered; the next clean key frame plays. Any thread may call the decoder; calls wait for each other.
public final class VideoDecoder: Sendable {
  private struct State {
    var decoding: StreamDecoding
    var isInvalidated = false
  }

  private let state: Mutex<State>
  private let broadcast = Broadcast<DecodedPicture>()

  /// Opens a decoder.
  ///
  /// - Throws: ``DecoderError/configuration(_:)``, and ``DecoderError/unavailable(_:)`` where the named render node has no
  ///   driver.
  public init(configuration: Configuration = Configuration()) throws(DecoderError) {
    state = Mutex(State(decoding: try StreamDecoding(configuration)))
  }

  deinit { broadcast.finish() }

  /// The settings. Setting them begins anew: the decoder opens again with the next access unit, keeps the parameter sets, and
  /// waits for a key frame. An impossible value shows as an error of the next ``decode(_:)``.
  public var configuration: Configuration {
    get { state.withLock { $0.decoding.configuration } }
    set { state.withLock { $0.decoding.begin(newValue) } }
  }

  /// The decoder in use, and the reason for its choice.
  public var selection: Selection { state.withLock { $0.decoding.selection } }

  /// Counts since the decoder was created.
  public var counts: Counts { state.withLock { $0.decoding.counts } }

  /// `true` if only a picture can be decoded at which a decoder can start.
  public var needsKeyFrame: Bool { state.withLock { $0.decoding.needsKeyFrame } }

  /// Returns a stream of the pictures from now on, for one more subscriber, which keeps the newest ones. It ends with
  /// ``invalidate()``.
  public func decodedFrames(_ buffering: Broadcast<DecodedPicture>.Buffering = .newest(1)) -> AsyncStream<
    DecodedPicture
  > {
    broadcast.stream(buffering)
  }

  /// The pictures from now on, for one more subscriber, which keeps the newest one.
  public var decodedFrames: AsyncStream<DecodedPicture> { decodedFrames(.newest(1)) }

  /// Sets the parameter sets for a stream that does not carry them, as MP4 files and session descriptions do.
  ///
  /// - Throws: ``DecoderError`` for sets that are invalid or announce too large a picture. The others are known all the same.
  public func setParameterSets(_ sets: ParameterSets) throws(DecoderError) {
    try learn(sets.nalUnits.flatMap { AnnexB.startCode + $0 }, sets.codec)
  }

  /// Sets all parameter sets of a decoder configuration record, the `avcC` box.
  ///
  /// - Throws: as ``setParameterSets(_:)`` does.
  public func setParameterSets(_ record: DecoderConfiguration) throws(DecoderError) {
    try learn((record.sequenceParameterSets + record.pictureParameterSets).flatMap { AnnexB.startCode + $0 }, .h264)
  }

  /// Sets all parameter sets of a decoder configuration record of HEVC, the `hvcC` box.
  ///
  /// - Throws: ``DecoderError`` for sets that are invalid or announce too large a picture.
  public func setParameterSets(_ record: HEVCDecoderConfiguration) throws(DecoderError) {
    let sets = record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
    try learn(sets.flatMap { AnnexB.startCode + $0 }, .hevc)
  }

  private func learn(_ bytes: [UInt8], _ codec: VideoCodec) throws(DecoderError) {
    try withDecoding { decoding throws(DecoderError) in try decoding.learn(bytes, codec) }
  }

  /// Decodes an access unit. The pictures that are complete go to the subscribers, and are returned.
  ///
  /// Without reordered pictures that is the access unit's own picture. The pool limits how many pictures exist at once
  /// (``Configuration/poolCapacity``).
  ///
  /// A stream begins, and goes on after damage, at a key frame or at a recovery point. Pictures that a recovery point leaves
  /// incomplete are not shown, which is no error; ``Counts/refused`` counts them. A gap in the numbers of the access units
  /// (``/Adaptors/EncodedPicture/number``) counts as a loss.
  ///
  /// No picture is lost to an error. If pictures were complete before it, the call returns them, ``needsKeyFrame`` is `true`, and the
  /// next call throws the error, unless the stream goes on there.
  ///
  /// - Throws: ``DecoderError``.
  @discardableResult
  public func decode(_ unit: EncodedPicture) throws(DecoderError) -> [DecodedPicture] {
    try withDecoding { decoding throws(DecoderError) in try decoding.decode(unit) { broadcast.send($0) } }
  }

  /// Decodes an access unit of `codec` with length-prefixed NAL units.
  ///
  /// - Throws: ``DecoderError``, as ``decode(_:)`` does; ``DecoderError/format(_:)`` for lengths that do not fit.
  @discardableResult
  public func decode(
    avcc bytes: UnsafeRawBufferPointer, lengthSize: Int = AVCC.lengthSize, codec: VideoCodec = .h264,
    timestamp: Instant
  ) throws(DecoderError) -> [DecodedPicture] {
    let limit = configuration.maximumAccessUnitBytes
    guard bytes.count <= limit else { throw try refuse(.accessUnitSize(bytes.count, limit: limit)) }
    let unit: EncodedPicture
    do throws(NALUnitFormatError) {
      unit = try EncodedPicture(avcc: bytes, lengthSize: lengthSize, codec: codec, timestamp: timestamp)
    } catch {
      throw try refuse(.format(error))
    }
    return try decode(unit)
  }

  private func refuse(_ error: DecoderError) throws(DecoderError) -> DecoderError {
    try withDecoding { decoding throws(DecoderError) in decoding.refuse(error) }
  }

  /// Delivers and returns the pictures that are held back for reordering, at the end of a stream. The next picture must be a key
  /// frame, or have a recovery point.
  ///
  /// - Throws: ``DecoderError``.
  @discardableResult
  public func flush() throws(DecoderError) -> [DecodedPicture] {
    try withDecoding { decoding throws(DecoderError) in try decoding.flush { broadcast.send($0) } }
  }

  /// Closes the decoder and ends the subscribers' streams. Later calls throw ``DecoderError/invalidated``. Idempotent.
  public func invalidate() {
    state.withLock { state in
      state.isInvalidated = true
      state.decoding.close()
    }
    broadcast.finish()
  }

  private func withDecoding<Result>(
    _ body: (inout StreamDecoding) throws(DecoderError) -> Result
  ) throws(DecoderError) -> Result where Result: Sendable {
    try state.withLock { state throws(DecoderError) in
      guard !state.isInvalidated else { throw .invalidated }
      return try body(&state.decoding)
    }
  }
}
