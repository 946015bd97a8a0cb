public import Media

/// A camera whose pictures can be looked at.
///
/// Called as ``ControlTarget`` is.
public protocol PictureTarget: Sendable {
  /// Begins to make JPEG pictures for one who looks, as long as what comes back is held.
  ///
  /// - Parameters:
  ///   - name: who it is, for a person.
  ///   - isSnapshot: whether it wants one alone.
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func look(_ name: String, isSnapshot: Bool) throws -> any PictureSequence

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
  func next(until deadline: MediaTime) async throws -> [UInt8]

  /// Notes that one of so many bytes has gone out.
  func noteSent(_ bytes: Int)
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
