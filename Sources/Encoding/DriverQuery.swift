public import Media
import Threading
public import VAAPI

/// Asks a driver what it can do, and waits no longer than an encoder would for its opening.
public enum DriverQuery {
  /// The answer of one driver, from its thread to whoever waits.
  private final class Answer: @unchecked Sendable {
    // Sendable: `result` is touched under the monitor alone.
    let monitor = Monitor()
    var result: Result<VAAPICapabilities, EncoderError>?
  }

  /// What the driver of `node` can do. One that hangs is left behind on its thread.
  ///
  /// - Throws: ``/Media/EncoderError`` as `VAAPICapabilities.init(of:)` does, or
  ///   ``/Media/EncoderError/hung(library:after:)``.
  public static func capabilities(
    of node: RenderNode, within limit: MediaTime = FailoverEncoder.Policy().openingLimit
  ) throws(EncoderError) -> VAAPICapabilities {
    let answer = Answer()
    let thread: NamedThread
    do throws(SystemFailure) {
      thread = try NamedThread("nj-driver") {
        let result = Result { () throws(EncoderError) in try VAAPICapabilities(of: node) }
        answer.monitor.locked {
          answer.result = result
          answer.monitor.signal()
        }
      }
    } catch {
      throw .unavailable("no thread for \(node.path): \(error)")
    }
    let deadline = MediaTime.now() + limit
    let result = answer.monitor.locked { () -> Result<VAAPICapabilities, EncoderError>? in
      while answer.result == nil, answer.monitor.wait(until: deadline) {}
      return answer.result
    }
    guard let result else {
      thread.detach()
      throw .hung(library: "VA-API (\(node.path))", after: limit)
    }
    _ = consume thread
    return try result.get()
  }
}
