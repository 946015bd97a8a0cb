import Credentials
import HTTPTypes
import Hummingbird

/// What can be looked at from outside: figures and health.
public protocol ObservedTarget: Sendable {
  /// The figures of all cameras and of the program.
  var metrics: MetricsPage { get }

  /// Whether all is well. Never waits for a frame, and tells when somebody else waits for one in vain.
  func health() -> HealthStatus
}

/// The routes for those who watch over the program, which read alone: any role does.
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
        throw Refusal.noCamera(name, of: cameras.map(\.name))
      }
      return ControlAPI.answer(camera, status: camera.healthy ? .ok : .serviceUnavailable)
    }
  }
}
