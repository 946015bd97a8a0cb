public import Platform

/// The reason why a frame never reached a viewer. Every dropped frame is counted under one of these.
public enum DropCause: Int, CaseIterable, Sendable {
  /// The driver's sequence number jumped: the driver had no empty buffer, or lost the frame itself.
  case driver
  /// The driver marked the buffer `V4L2_BUF_FLAG_ERROR`.
  case driverError
  /// The buffer held fewer bytes than the picture has.
  case short
  /// The compressed picture could not be decoded.
  case corrupt
  /// Every frame of the pool was in use.
  case poolExhausted
  /// A newer frame replaced it before the encoder took it.
  case encoderLate
  /// The encoder refused the frame.
  case encoderError
  /// The frame was encoded, but the network accepted no packet of it for any destination.
  case network
  /// A newer picture was waiting when the capture thread came for one.
  case captureLate
  /// The camera coded the picture, and no decoder could show it: a picture before it is missing, or it is damaged.
  case undecodable

  /// The name in statistics, in `snake_case`.
  public var name: String {
    switch self {
    case .driver: "driver"
    case .driverError: "driver_error"
    case .short: "short"
    case .corrupt: "corrupt"
    case .poolExhausted: "pool_exhausted"
    case .encoderLate: "encoder_late"
    case .encoderError: "encoder_error"
    case .network: "network"
    case .captureLate: "capture_late"
    case .undecodable: "undecodable"
    }
  }
}

/// A video source's answer to a request for the next frame.
public enum CaptureEvent: ~Copyable {
  /// A picture.
  case frame(Frame)
  /// `count` pictures were lost; ask again.
  case dropped(DropCause, count: Int)
  /// Nothing happened within the source's own timeout, or it was interrupted; ask again, or stop.
  case idle
  /// No further picture will come.
  case ended
}

/// A source's actual format, after negotiation.
public struct SourceFormat: Hashable, Sendable {
  /// The size of a frame in the ``Orientation/upright`` orientation; a frame on its side has width and height
  /// exchanged.
  public var size: PictureSize
  /// The nominal rate; a camera in low light may be slower.
  public var frameRate: FrameRate
  /// The pixel format of the device or file, before conversion.
  public var pixelFormat: PixelFormat
  /// The colour description of the NV12 frames' samples.
  public var color: ColorDescription
  /// `true` if rotating a frame costs an extra pass over the picture, which ``VideoSource/leaveTurning(to:)`` avoids.
  /// `false` where pictures are rotated during conversion.
  public var turnsApart: Bool
  /// The conversion of pictures to NV12, in a few words: `no copy`, `libyuv`, `libjpeg-turbo`, `libv4l`.
  public var conversion: String

  /// Creates a format.
  public init(
    size: PictureSize, frameRate: FrameRate, pixelFormat: PixelFormat, color: ColorDescription, conversion: String,
    turnsApart: Bool = false
  ) {
    self.size = size
    self.frameRate = frameRate
    self.pixelFormat = pixelFormat
    self.color = color
    self.conversion = conversion
    self.turnsApart = turnsApart
  }
}

/// A source of pictures: a camera, the synthetic camera, a file.
///
/// One thread at a time uses a source. Its creator opens and negotiates it, then hands it to the capture thread, which
/// calls `start`, `next` again and again, and `stop`.
public protocol VideoSource: AnyObject, Sendable {
  /// The source's format.
  var format: SourceFormat { get }
  /// The source's name for people: `HD Pro Webcam C920 (/dev/video0)`, `synthetic camera`.
  var name: String { get }
  /// `true` if frames arrive at the pace of a clock. `false` for a file at full speed, which waits for the encoder
  /// instead, so that no frame is dropped.
  var isLive: Bool { get }
  /// Sets the orientation of pictures from the next frame on; initially `.upright`. Any thread may call it at any time;
  /// it never blocks. The last call wins, even for a picture that `next` already waits for, because the orientation is
  /// read when the picture is converted. A frame's own `rotatedSize` shows the result.
  func orient(_ orientation: Orientation)
  /// The orientation of the last picture, applied by the source or by its encoder: the requested orientation, or the
  /// previous one where the request cannot be met. Any thread may read it.
  var orientation: Orientation { get }
  /// The reason why the orientation requested last is not available; nil where pictures have it, or where no picture
  /// has come since. A repeated request tries again. Any thread may read it.
  var turningFailure: (any Failure)? { get }
  /// Passes frames that `offer` covers on unrotated, with ``Frame/orientation``, where rotating them would cost an
  /// extra pass (``SourceFormat/turnsApart``). Called before `start`.
  func leaveTurning(to offer: TurnOffer)
  /// Passes the camera's own compressed pictures on with the frames while `demand` is set, where the camera compresses
  /// and the pictures need no rotation. Called before `start`.
  func keepCompressed(while demand: PictureDemand)
  /// Allocates memory for all four rotations, with the current mirroring, so that the first rotated frame costs no more
  /// than later ones. Without this call, that frame waits for the memory. Called before `start`; idempotent.
  ///
  /// - Throws: where memory is short; frames still come as before.
  func prepareTurning() throws
  /// Starts the flow of pictures.
  ///
  /// - Throws: where the device refuses.
  func start() throws
  /// Waits for the next picture, a loss, or `interrupt`. Does not allocate for a good frame.
  ///
  /// - Throws: where no more pictures will come: the device is gone or broken, or the file is unreadable. One bad
  ///   picture is a ``CaptureEvent`` and no error.
  func next(interrupt: borrowing Interrupt) throws -> CaptureEvent
  /// Stops the flow of pictures. Idempotent. Frames that are still held stay valid.
  func stop()
  /// The path that the camera's device was opened by; nil for a source without one.
  var devicePath: String? { get }
  /// The camera's condition; nil for a source that cannot be disconnected. Any thread may read it.
  var condition: CameraCondition? { get }
  /// Returns the camera's events since the last call, oldest first. Any thread may call it.
  func takeEvents() -> [CameraEvent]
}

extension VideoSource {
  /// Does nothing: the source rotates every frame.
  public func leaveTurning(to offer: TurnOffer) {}

  /// Does nothing: the source has no compressed pictures.
  public func keepCompressed(while demand: PictureDemand) {}

  /// Nil: the source is no device.
  public var devicePath: String? { nil }

  /// Nil: the source cannot be disconnected.
  public var condition: CameraCondition? { nil }

  /// Returns no events.
  public func takeEvents() -> [CameraEvent] { [] }
}
