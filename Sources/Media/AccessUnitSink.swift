/// Who takes what an encoder makes.
///
/// An object, and not a closure that lives for one call: an encoder's library calls back from within its own code, where
/// such a closure could only get by a copy on the heap for each picture.
public protocol AccessUnitSink: AnyObject {
  /// Takes `unit`, whose memory is lent for the call.
  func take(_ unit: borrowing AccessUnit)
}

/// A sink that calls a closure.
private final class ClosureSink: AccessUnitSink {
  private let body: (borrowing AccessUnit) -> Void

  init(_ body: @escaping (borrowing AccessUnit) -> Void) {
    self.body = body
  }

  func take(_ unit: borrowing AccessUnit) { body(unit) }
}

extension VideoEncoder {
  /// Encodes `frame` and lends what is ready to `deliver`; see ``VideoEncoder/encode(_:keyFrame:to:)``, which unlike this
  /// one allocates nothing.
  ///
  /// - Throws: ``EncoderError`` as that does.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void
  ) throws(EncoderError) {
    try withoutActuallyEscaping(deliver) { deliver throws(EncoderError) in
      try encode(frame, keyFrame: keyFrame, to: ClosureSink(deliver))
    }
  }
}
