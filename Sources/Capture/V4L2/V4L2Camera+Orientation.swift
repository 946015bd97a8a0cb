public import Media
public import Platform

extension V4L2Camera {
  /// The orientation of the last picture, as set by ``orient(_:)``.
  public var orientation: Orientation { converter.lastOrientation }

  /// The reason why pictures do not have the requested orientation: memory is short. Nil if they have it.
  public var turningFailure: (any Failure)? { converter.failure }

  /// Sets the orientation from the next picture on, applied after ``mounting``. Any thread may call it.
  public func orient(_ orientation: Orientation) {
    converter.orient(orientation)
  }

  /// Leaves rotations that `offer` covers to the encoder. Frames in the driver's memory then need no copy, and a JPEG
  /// camera's frames are decoded without a rotation. All other frames are rotated in the pass that converts them.
  public func leaveTurning(to offer: TurnOffer) {
    guard format.turnsApart else { return }
    converter.offer = offer
  }

  /// Allocates memory for rotated pictures: for an NV12 camera `poolCapacity` frames; those of other cameras are there already.
  /// Each rotation also gets the memory of its conversion. That is large only for JPEG: up to 4.5 bytes per pixel of the picture.
  ///
  /// - Throws: `FramePoolError` or `ConversionError` if memory is short.
  public func prepareTurning() throws {
    try converter.prepare()
  }
}
