package import Media
import Platform

/// An encoder that passes a camera's own coded pictures on, and leaves frames of samples to another encoder.
///
/// Either kind takes over from the other at a key frame, in one stream. After a lost or damaged picture, nothing passes
/// until the camera's next key frame, which is requested from the camera (``/Media/PassThrough``). If the camera's stream
/// cannot pass at all, the link gets the reason, and the camera delivers samples.
package final class PassThroughEncoder: VideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands; the others read `standbyMemory` alone.

  /// The time between two requests for a key frame, and the time without one after which the camera's stream is refused.
  private static let requestPause = Duration.milliseconds(500)
  private static let keyFrameLimit = Duration(seconds: 10)

  private let other: any VideoEncoder
  private let link: PassThrough
  private let stream: PassedStream
  private let succession = IDRSuccession()
  /// `true` if the last picture was the camera's own.
  private var isPassing = false
  /// `true` if every picture since the camera's last key frame has passed.
  private var isFollowing = false
  private var expected: UInt64 = 0
  private var requested: Instant?
  private var awaitedSince: Instant?
  private var own = EncoderCounters()

  /// Creates an encoder beside `other`, which is prepared for samples of the camera's size. Both are stopped together.
  ///
  /// - Parameters:
  ///   - profile: the greatest profile that every viewer has.
  ///   - link: the link to the camera, which is told the bitrate at once.
  package init(_ other: any VideoEncoder, size: PictureSize, profile: H264Profile, link: PassThrough) {
    self.other = other
    self.link = link
    let configuration = other.configuration
    stream = PassedStream(.init(size: size, profile: profile, frameRate: configuration.frameRate))
    link.request(.bitrate(configuration.bitrate))
  }

  /// The other encoder's configuration.
  package var configuration: EncoderConfiguration { other.configuration }
  /// The name of the encoder of the last picture.
  package var name: String { isPassing ? Self.cameraName : other.name }
  /// The name while the camera's own pictures pass.
  package static let cameraName = "the camera's own H.264"
  /// The parameter sets of the next pictures.
  package var parameterSets: ParameterSets {
    isPassing ? stream.parameterSets ?? other.parameterSets : other.parameterSets
  }
  /// The orientations that the other encoder applies.
  package var turns: OrientationSet { other.turns }
  /// The counters of both.
  package var counters: EncoderCounters { other.counters + own }
  /// The other encoder's standby memory.
  package var standbyMemory: Int? { other.standbyMemory }

  /// Prepares the other encoder.
  package func prepare() throws(EncoderError) { try other.prepare() }

  /// Passes a coded picture on, or encodes the frame with the other encoder.
  package func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    if let coded = frame.coded { return try pass(coded, of: frame, keyFrame: keyFrame, to: sink) }
    awaitedSince = nil
    let isFirst = isPassing
    // An encoder with lookahead delivers the picture in another call, when it is too late to encode it again.
    let isChecked = isFirst && other.configuration.lookahead == 0
    try succession.pass(ofNewEncoder: isChecked, keyFrame: keyFrame || isFirst, to: sink) {
      keyFrame throws(EncoderError) in try other.encode(frame, keyFrame: keyFrame, to: succession)
    }
    guard isFirst else { return }
    (isPassing, isFollowing) = (false, false)
    own.handovers += 1
  }

  private func pass(
    _ coded: CameraCodedPicture, of frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    if coded.number != expected { isFollowing = false }
    expected = coded.number &+ 1
    var picture: PassedStream.Picture?
    do throws(PassedStream.Fault) {
      picture = try stream.read(coded.bytes, color: frame.color)
      guard picture != nil else { return }
    } catch {
      isFollowing = false
      if case .unusable(let reason) = error { link.refuse("the camera's own H.264 cannot be passed on: \(reason)") }
    }
    if let picture, picture.isKeyFrame || isFollowing {
      let unit = AccessUnit(
        nalUnits: picture.nalUnits, isKeyFrame: picture.isKeyFrame, timestamp: frame.timestamp,
        captured: frame.captured)
      if try deliver(unit, to: sink) {
        if keyFrame, !picture.isKeyFrame { requestKeyFrame(at: frame.timestamp) }
        return
      }
    }
    own.undecodable += 1
    requestKeyFrame(at: frame.timestamp)
    let since = awaitedSince ?? frame.timestamp
    awaitedSince = since
    guard frame.timestamp - since > Self.keyFrameLimit else { return }
    link.refuse("the camera sent no key frame for \(Int(Self.keyFrameLimit.seconds)) seconds")
  }

  /// Delivers a picture. Returns `false` for a key frame with which the camera cannot take over yet.
  private func deliver(_ unit: borrowing AccessUnit, to sink: any AccessUnitSink) throws(EncoderError) -> Bool {
    if unit.isKeyFrame {
      if !isPassing {
        guard !succession.isRepeated(by: unit) else { return false }
        try other.flush {
          succession.note($0)
          sink.take($0)
        }
        isPassing = true
        own.handovers += 1
      }
      (isFollowing, requested, awaitedSince) = (true, nil, nil)
    }
    succession.note(unit)
    sink.take(unit)
    own.passed += 1
    return true
  }

  private func requestKeyFrame(at time: Instant) {
    if let requested, time - requested < Self.requestPause { return }
    requested = time
    link.request(.keyFrame)
  }

  /// Changes the other encoder, and the camera's bitrate.
  package func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    let former = other.configuration.bitrate
    try other.change(bitrate: bitrate, frameRate: frameRate)
    if bitrate != former { link.request(.bitrate(bitrate)) }
  }

  /// Changes the other encoder.
  package func change(effort: EncodingEffort?) throws(EncoderError) -> Bool { try other.change(effort: effort) }
  /// Restricts the other encoder.
  package func restrict(_ restrictions: EncoderRestrictions) { other.restrict(restrictions) }
  /// Returns the size for the other encoder.
  package func frameSize(for rotated: PictureSize) -> PictureSize { other.frameSize(for: rotated) }
  /// Lends the pictures that the other encoder holds back.
  package func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    if !isPassing { try other.flush(deliver: deliver) }
  }

  /// Stops the other encoder.
  package func stop() { other.stop() }
}
