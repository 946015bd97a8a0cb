public import Media

/// A camera whose pictures can be looked at.
///
/// Called as ``ControlTarget`` is.
public protocol PictureTarget: Sendable {
  /// Begins to make JPEG pictures for one who looks, as long as what comes back is held.
  ///
  /// - Parameters:
  ///   - peer: how it is connected, and who has logged in.
  ///   - isSnapshot: whether it wants one alone.
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func look(_ peer: ViewerPeer, isSnapshot: Bool) throws -> any PictureSequence

  /// What the receivers at a destination must know (SDP), with the parameter sets of now; nil where there is none that is
  /// meant.
  ///
  /// - Parameter number: which one, from 1, in the order given; nil is the first that gets H.264.
  func sessionDescription(ofDestination number: Int?) -> DescribedDestination?
}

/// The pictures of a camera from now on, for one who looks.
public protocol PictureSequence: AnyObject, Sendable {
  /// The next JPEG, whole: the newest one, however many have gone by.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets; of the kind `temporary` where none came in time, and the
  ///   next one may.
  func next(until deadline: MediaTime) async throws -> ServedPicture

  /// Notes that one of so many bytes has gone out.
  func noteSent(_ bytes: Int)
}

/// A JPEG picture on its way to a client.
public struct ServedPicture: Sendable {
  /// What it shows, compared with what the camera sees now. The raw value is that of the header `Nightjar-Picture`.
  public enum Origin: String, CaseIterable, Sendable {
    /// The camera's own picture.
    case live
    /// The camera's own picture, which has stayed the same for a while, bit for bit.
    case frozen
    /// The picture that takes the place of a camera that is away or fails.
    case placeholder
    /// The synthetic camera's picture, because no camera was found at the start.
    case substitute
  }

  /// A whole JPEG.
  public var bytes: [UInt8]
  /// What it shows.
  public var origin: Origin

  /// Creates a picture from a whole JPEG and what it shows.
  public init(_ bytes: [UInt8], _ origin: Origin = .live) {
    (self.bytes, self.origin) = (bytes, origin)
  }
}

/// What the receivers at a destination must know.
public struct DescribedDestination: Hashable, Sendable {
  /// The session description.
  public var text: String
  /// Whether a key is in it.
  public var hasKey: Bool

  /// Both.
  public init(text: String, hasKey: Bool) {
    (self.text, self.hasKey) = (text, hasKey)
  }
}
