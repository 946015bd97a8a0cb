import HTTPTypes
import Hummingbird
import NIOHTTP1

/// The routes of a camera's own settings.
struct CameraControlAPI: Sendable {
  let api: ControlAPI

  /// The methods that each path below a camera allows.
  static let orders: [String: [HTTPRequest.Method]] = ["controls": [.get, .head, .put], "sensor-lock": [.put]]

  func add(to group: RouterGroup<ControlAPI.Context>) {
    group.add(.get, "controls", for: .read) { _, context in
      let camera = try api.camera(context)
      return ControlAPI.answer(try await camera.controls())
    }
    group.addChange(.put, "controls") { request, context, what in
      let camera = try api.camera(context)
      let change = try await ControlsRequest(json: api.body(of: request))
      let controls = change.controls.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
      what(controls.map { "\($0)=\($1 ?? "as usual")" }.joined(separator: " "))
      return ControlAPI.answer(try await camera.changeControls(controls))
    }
    group.addChange(.put, "sensor-lock") { request, context, what in
      let camera = try api.camera(context)
      let change = try await SensorLockRequest(json: api.body(of: request))
      what(change.locked ? "locked" : "free")
      return ControlAPI.answer(try await camera.lockSensor(change.locked))
    }
  }
}

/// The body of `PUT /v1/cameras/{camera}/controls`.
struct ControlsRequest: ControlRequest {
  /// The requested value of each control; nil resets it to the value without this request.
  var controls: [String: String?]

  static let fields = [
    (name: "controls", limit: "an object of up to 64 names with a number, true, false, a text or null for each")
  ]
  static let example = #"{"controls":{"brightness":10}}"#
  private static let countLimit = 64

  init(_ values: [(name: String, value: String?)]) {
    controls = Dictionary(values.map { ($0.name, $0.value) }) { $1 }
  }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    let object = try fields.nestedContainer(keyedBy: FieldName.self, forKey: "controls")
    guard object.allKeys.count <= Self.countLimit else {
      throw DecodingError.dataCorruptedError(forKey: "controls", in: fields, debugDescription: "too many")
    }
    controls = [:]
    for key in object.allKeys { controls.updateValue(try Self.text(key, in: object), forKey: key.stringValue) }
  }

  private static func text(_ key: FieldName, in object: KeyedDecodingContainer<FieldName>) throws -> String? {
    if try object.decodeNil(forKey: key) { return nil }
    // A value that is neither is a text; for any other value the last line throws.
    if let flag = try? object.decode(Bool.self, forKey: key) { return "\(flag)" }
    if let number = try? object.decode(Int64.self, forKey: key) { return "\(number)" }
    return try object.decode(String.self, forKey: key)
  }
}

/// The body of `PUT /v1/cameras/{camera}/sensor-lock`.
struct SensorLockRequest: ControlRequest {
  var locked: Bool

  static let fields = [(name: "locked", limit: "true or false")]
  static let example = #"{"locked":true}"#

  init(_ isLocked: Bool) { locked = isLocked }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    locked = try fields.decode(Bool.self, forKey: "locked")
  }
}

extension ControlClient {
  /// Returns a camera's own settings.
  package func controls() throws -> Answer<CameraControlsAnswer> { try ask(.GET, route("controls")) }

  /// Sets some of them; nil resets what was set this way.
  package func changeControls(_ values: [(name: String, value: String?)]) throws -> Answer<CameraControlsAnswer> {
    try ask(.PUT, route("controls"), ControlsRequest(values))
  }

  /// Fixes the camera's automatic settings once they have settled, or frees them.
  package func lockSensor(_ isLocked: Bool) throws -> Answer<CameraControlsAnswer> {
    try ask(.PUT, route("sensor-lock"), SensorLockRequest(isLocked))
  }
}
