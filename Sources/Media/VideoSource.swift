/// Why a frame never reached a viewer. Every drop is counted under one of these.
public enum DropCause: Int, CaseIterable, Sendable {
  /// The driver's sequence number jumped: it had no buffer of ours to fill, or lost the frame itself.
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
  /// The encoder refused it.
  case encoderError
  /// It was encoded, and the network took no packet of it for any destination.
  case network

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
    }
  }
}

/// What a video source has to say when it is asked for the next frame.
public enum CaptureEvent: ~Copyable {
  /// A picture.
  case frame(Frame)
  /// `count` pictures were lost; ask again.
  case dropped(DropCause, count: Int)
  /// Nothing happened within the source's own patience, or it was interrupted; ask again, or stop.
  case idle
  /// There will be no further picture.
  case ended
}

/// What a source really delivers, after negotiation.
public struct SourceFormat: Hashable, Sendable {
  /// The size of a frame that is laid ``Orientation/upright``; one on its side has the same, width for height.
  public var size: PictureSize
  /// The nominal rate; a camera in low light may be slower.
  public var frameRate: FrameRate
  /// The pixel format of the device or file, before conversion.
  public var pixelFormat: PixelFormat
  /// What the samples of the NV12 frames mean.
  public var color: ColorDescription
  /// Whether a turned frame costs a pass of its own over the picture: then ``VideoSource/leaveTurning(to:)`` spares it.
  /// False where pictures are turned as they are converted.
  public var turnsApart: Bool
  /// How the pictures become NV12, in a few words: `no copy`, `libyuv`, `libjpeg-turbo`, `libv4l`.
  public var conversion: String

  /// A format.
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

/// Where pictures come from: a camera, the synthetic camera, a file.
///
/// A source is used by one thread at a time: it is opened and negotiated by whoever makes it, then handed to
/// the capture thread, which calls `start`, `next` again and again, and `stop`.
public protocol VideoSource: AnyObject, Sendable {
  /// What it delivers.
  var format: SourceFormat { get }
  /// What it is, for a person: `HD Pro Webcam C920 (/dev/video0)`, `synthetic camera`.
  var name: String { get }
  /// Whether frames arrive at the pace of a clock. False for a file at full speed, which waits for the
  /// encoder instead, so that no frame is dropped.
  var isLive: Bool { get }
  /// From the next frame on pictures are laid so, `.upright` being the beginning. From any thread at any time; never
  /// blocks. The last call wins, also over a picture that `next` waits for already: the orientation is read when the
  /// picture is converted. A frame's own `laidSize` says what became of it.
  func orient(_ orientation: Orientation)
  /// How the last picture was laid, or is to be laid by its encoder: what was asked for, or what was before it where that
  /// cannot be had. From any thread.
  var orientation: Orientation { get }
  /// Why the orientation that was asked for last cannot be had; nil where pictures are laid so, or none has come since.
  /// Asking once more tries once more. From any thread.
  var turningFailure: (any Failure)? { get }
  /// Frames that `offer` covers are handed on unturned, with ``Frame/orientation``, where turning them would cost a pass of
  /// its own (``SourceFormat/turnsApart``). Called before `start`.
  func leaveTurning(to offer: TurnOffer)
  /// Hands the camera's own compressed pictures on with the frames as long as `demand` is there, where it makes such and
  /// they are laid as they are to be seen. Called before `start`.
  func keepCompressed(while demand: PictureDemand)
  /// Readies memory for all four rotations, mirrored as is wanted now: afterwards the first turned frame costs no
  /// more than those that follow. Without it that frame waits for the memory. Called before `start`; idempotent.
  ///
  /// - Throws: where memory is short; frames still come as before.
  func prepareTurning() throws
  /// Starts the flow of pictures.
  ///
  /// - Throws: where the device refuses.
  func start() throws
  /// Waits for the next picture, a loss, or `interrupt`. Does not allocate on the way of a good frame.
  ///
  /// - Throws: where no more pictures will come: the device is gone or broken, the file unreadable. One bad picture is a
  ///   ``CaptureEvent`` and no error.
  func next(interrupt: borrowing Interrupt) throws -> CaptureEvent
  /// Ends the flow of pictures. Idempotent. Frames that are still held stay valid.
  func stop()
  /// How its camera is, where that may come and go; nil for all others. From any thread.
  var condition: CameraCondition? { get }
  /// What happened to its camera since the last call, oldest first. From any thread.
  func takeEvents() -> [CameraEvent]
}

extension VideoSource {
  /// Nothing: every frame is turned before it is handed on.
  public func leaveTurning(to offer: TurnOffer) {}

  /// Nothing: it has none.
  public func keepCompressed(while demand: PictureDemand) {}

  /// Nil: it neither comes nor goes.
  public var condition: CameraCondition? { nil }

  /// None.
  public func takeEvents() -> [CameraEvent] { [] }
}
