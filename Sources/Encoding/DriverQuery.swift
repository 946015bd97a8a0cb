public import Media
public import Platform
public import VAAPI

/// A query of a driver's capabilities with the time limit of an encoder's opening.
public enum DriverQuery {
  /// Returns the capabilities of the driver of `node`. A driver that hangs is abandoned on its thread.
  ///
  /// - Throws: ``/Media/EncoderError`` as `VAAPICapabilities.init(of:)` does, or
  ///   ``/Media/EncoderError/hung(library:after:)``.
  public static func capabilities(
    of node: RenderNode, within limit: Duration = EncoderLineup.Policy().openingLimit
  ) throws(EncoderError) -> VAAPICapabilities {
    let call: BlockingCall<VAAPICapabilities, EncoderError>
    do throws(SystemFailure) {
      call = try BlockingCall("nj-driver") { () throws(EncoderError) in try VAAPICapabilities(of: node) }
    } catch {
      throw .unavailable("no thread for \(node.path): \(error)")
    }
    guard let result = call.result(by: .now() + limit) else {
      throw .hung(library: "VA-API (\(node.path))", after: limit)
    }
    return try result.get()
  }
}
