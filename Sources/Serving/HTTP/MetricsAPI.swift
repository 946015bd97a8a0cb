import HTTPTypes
import Hummingbird

/// A target that can be observed: its metrics and health.
package protocol ObservedTarget: Sendable {
  /// The metrics of all cameras and of the program.
  var metrics: MetricsPage { get }

  /// Returns the health. Never waits for a frame, and reports a thread that waits for one in vain.
  func health() -> HealthStatus
}

/// The routes for monitoring, which only read: any role may use them.
///
/// | request | answer |
/// |---|---|
/// | `GET /metrics` | ``MetricsText``, of all cameras |
/// | `GET /healthz` | ``HealthStatus``, 200 or 503 |
/// | `GET /cameras/{camera}/healthz` | ``HealthStatus/Camera``, 200 or 503 |
struct MetricsAPI {
  let target: any ObservedTarget

  static let routes: [String: [HTTPRequest.Method]] = [
    "/metrics": [.get, .head], "/healthz": [.get, .head], "/cameras/{camera}/healthz": [.get, .head],
  ]

  func add(to router: Router<ControlAPI.Context>) {
    router.add(.get, "metrics", for: .read) { _, _ in
      var headers = ControlAPI.headers
      headers[.contentType] = MetricsText.contentType
      return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: target.metrics.content))
    }
    router.add(.get, "healthz", for: .read) { _, _ in
      let health = target.health()
      return ControlAPI.answer(health, status: health.healthy ? .ok : .serviceUnavailable)
    }
    router.add(.get, "cameras/:camera/healthz", for: .read) { _, context in
      let cameras = target.health().cameras
      let name = context.parameters.get("camera") ?? ""
      guard let camera = cameras.first(where: { $0.name == name }) else {
        throw HTTPRefusal.noCamera(name, of: cameras.map(\.name))
      }
      return ControlAPI.answer(camera, status: camera.healthy ? .ok : .serviceUnavailable)
    }
  }
}
