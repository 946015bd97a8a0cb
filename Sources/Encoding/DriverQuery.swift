public import Media
import Threading
public import VAAPI

/// Asks a driver what it can do, and waits no longer than an encoder would for its opening.
public enum DriverQuery {
  /// What the driver of `node` can do. One that hangs is left behind on its thread.
  ///
  /// - Throws: ``/Media/EncoderError`` as `VAAPICapabilities.init(of:)` does, or
  ///   ``/Media/EncoderError/hung(library:after:)``.
  public static func capabilities(
    of node: RenderNode, within limit: MediaTime = FailoverEncoder.Policy().openingLimit
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
