/// A receiver of an encoder's output.
///
/// The receiver is an object and not a closure that lives for one call: an encoder's library calls back from its own
/// code, and such a closure would need a copy on the heap for each picture.
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
  /// Encodes `frame` and lends the finished access units to `deliver`. Unlike ``VideoEncoder/encode(_:keyFrame:to:)``,
  /// this function allocates memory.
  ///
  /// - Throws: ``EncoderError`` as that function does.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void
  ) throws(EncoderError) {
    try withoutActuallyEscaping(deliver) { deliver throws(EncoderError) in
      try encode(frame, keyFrame: keyFrame, to: ClosureSink(deliver))
    }
  }
}
