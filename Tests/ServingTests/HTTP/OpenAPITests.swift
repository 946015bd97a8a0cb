import Foundation
import TestSupport
import Testing

/// docs/openapi.json against the server: each says the same of every path, method, status code and field.
@Suite struct OpenAPITests {
  private typealias Object = [String: Any]

  private static func document() throws -> Object {
    let data = try Data(contentsOf: packageRoot.appendingPathComponent("docs/openapi.json"))
    return try #require(JSONSerialization.jsonObject(with: data) as? Object)
  }

  /// The routes that are no part of the API: the page, and WHEP, which has a specification of its own.
  private static let others: [String: Set<String>] = {
    let files = [
      "alarm.js", "alerts.js", "app.js", "elements.js", "events.js", "icon.png", "icon.svg", "liveness.js", "login.js",
      "manifest.webmanifest", "mjpeg.js", "page.css", "phones.js", "player.js", "push.js", "reach.js", "strings.js",
      "viewers.js", "whep.js", "worker.js",
    ]
    var routes: [String: Set<String>] = ["/": ["get"], "/ca.crt": ["get"]]
    for file in files { routes["/page/\(file)"] = ["get"] }
    for path in ["/whep", "/cameras/{camera}/whep"] {
      (routes[path], routes["\(path)/{session}"]) = (["get", "post", "options"], ["get", "delete"])
    }
    return routes
  }()

  @Test func `every route of the API stands in it, and no other`() throws {
    let document = try Self.document()
    #expect((document["openapi"] as? String)?.hasPrefix("3.1.") == true)
    let paths = try #require(document["paths"] as? [String: Object])
    let served = try ServedControl()
    let all = try served.curl([], "/v1/nothing")
    #expect(all["limit"]?.components(separatedBy: ", ") == (Array(paths.keys) + Self.others.keys).sorted())
    let methods = paths.mapValues { Set($0.keys).subtracting(["parameters"]) }.merging(Self.others) { one, _ in one }
    for (path, expected) in methods {
      let route = path.replacing("{camera}", with: "camera").replacing("{session}", with: "0123")
        .replacing("{phone}", with: "anna").replacing("{event}", with: "1")
      let answer = try served.curl(["-X", "TRACE"], route)
      #expect(answer.status == 405)
      // GET is answered to HEAD as well, which OpenAPI need not say.
      let methods = Set(try #require(answer["limit"]).lowercased().components(separatedBy: ", ")).subtracting(["head"])
      #expect(methods == expected, "\(path)")
    }
    for (path, item) in paths {
      #expect((item["parameters"] != nil) == path.contains("{"))
    }
    let identifiers = paths.values.flatMap { $0.values.compactMap { ($0 as? Object)?["operationId"] as? String } }
    let operations = paths.values.reduce(0) { $0 + $1.keys.count { $0 != "parameters" } }
    #expect(Set(identifiers).count == identifiers.count && identifiers.count == operations, "\(identifiers)")
  }

  /// Returns the schema of an operation's body, and the example as it is and as JSON; nil for an operation without a body.
  static func body(
    of operation: [String: Any]
  ) throws -> (schema: [String: Any], example: Any, text: String)? {
    guard let request = operation["requestBody"] as? Object else { return nil }
    let content = try #require((request["content"] as? [String: Object])?["application/json"])
    let example = try #require(content["example"])
    let text = String(decoding: try JSONSerialization.data(withJSONObject: example), as: UTF8.self)
    return (try #require(content["schema"] as? Object), example, text)
  }

  /// Returns `true` for a route whose answer has no end.
  static func isStream(_ route: String) -> Bool {
    [".mjpg", ".mp3", "/events"].contains { route.hasSuffix($0) }
  }

  @Test(arguments: [false, true])
  func `every request is answered as it says`(overNetwork: Bool) throws {
    let document = try Self.document()
    let schemas = try #require((document["components"] as? Object)?["schemas"] as? [String: Object])
    let server = try NetworkControl()
    var codes: Set<Int> = []

    func ask(_ method: String, _ route: String, body: String?, _ operation: Object, expecting code: Int) throws {
      let arguments = ["-X", method.uppercased()] + (body.map { ["-d", $0] } ?? [])
      let login = code == 401 ? [] : server.bearer
      let answer =
        switch (overNetwork, Self.isStream(route) && code == 200) {
        case (true, true): try server.stream(login + arguments, route)
        case (true, false): try server.curl(login + arguments, route)
        case (false, true): try server.served.stream(arguments, route)
        case (false, false): try server.served.curl(arguments, route)
        }
      #expect(answer.status == code, "\(method) \(route): \(answer.body)")
      let responses = try #require(operation["responses"] as? [String: Object])
      let described = try #require(responses["\(answer.status)"], "\(method) \(route) \(answer.status)")
      let (type, content) = try #require((described["content"] as? [String: Object])?.first)
      #expect(HTTPFields(answer.headers)["content-type"]?.hasPrefix(type) == true, "\(answer.headers)")
      codes.insert(answer.status)
      // A picture has no schema that could be checked here.
      guard type == "application/json" || type.hasPrefix("text/plain") else { return }
      let schema = try #require(content["schema"] as? Object)
      let value: Any =
        type == "application/json"
        ? try JSONSerialization.jsonObject(with: Data(answer.body.utf8), options: .fragmentsAllowed) : answer.body
      #expect(Self.faults(value, schema, schemas, at: "\(method) \(route) \(code)") == [])
    }

    for (path, item) in try #require(document["paths"] as? [String: Object]).sorted(by: { $0.key < $1.key }) {
      for (method, operation) in item.sorted(by: { $0.key < $1.key }) {
        guard let operation = operation as? Object else { continue }
        let route = path.replacingOccurrences(of: "{camera}", with: "camera")
          .replacingOccurrences(of: "{phone}", with: "anna").replacingOccurrences(of: "{event}", with: "1")
        let content = try Self.body(of: operation)
        if let content { #expect(Self.faults(content.example, content.schema, schemas, at: path) == []) }
        var body = content?.text
        // A phone needs a code that is true, and can be shut out only once it is there.
        if route == "/v1/phones", method == "post" { body = try Self.introduction(server.served) }
        if method == "delete", path.contains("{phone}") {
          let added = try server.served.curl(["-d", try Self.introduction(server.served)], "/v1/phones")
          #expect(added["name"] == "anna", "\(added.body)")
        }
        try ask(method, route, body: body, operation, expecting: 200)
        if body != nil { try ask(method, route, body: #"{"nonsense":1}"#, operation, expecting: 400) }
        if method != "get" {
          let large = String(repeating: "x", count: 5000)
          try ask(method, route, body: large, operation, expecting: 413)
        }
        if path.contains("{camera}") {
          let unknown = path.replacingOccurrences(of: "{camera}", with: "attic")
          try ask(method, unknown, body: body, operation, expecting: 404)
        }
        if path.contains("{event}") {
          for (event, code) in [("99", 404), ("x", 400)] {
            let unknown = path.replacingOccurrences(of: "{event}", with: event)
            try ask(method, unknown, body: nil, operation, expecting: code)
          }
        }
        if path.contains("{phone}") { try ask(method, "/v1/phones/nobody", body: nil, operation, expecting: 404) }
        let isPublic = (operation["security"] as? [Object])?.isEmpty == true
        if isPublic { try ask(method, route, body: body, operation, expecting: 403) }
        if overNetwork, !isPublic { try ask(method, route, body: body, operation, expecting: 401) }
      }
    }
    #expect(codes == (overNetwork ? [200, 400, 401, 403, 404, 413] : [200, 400, 403, 404, 413]))
  }

  /// Returns the introduction that a phone sends that has been given a link.
  static func introduction(_ served: ServedControl) throws -> String {
    let made = try served.curl(["-d", #"{"role":"view"}"#], "/v1/phones/codes")
    for phone in ["anna"] { _ = try served.curl(["-X", "DELETE"], "/v1/phones/\(phone)") }
    return #"{"code":"\#(try #require(made["code"], "\(made.body)"))","name":"anna"}"#
  }

  @Test(
    arguments: [
      #"{"muted":true}"#, #"{"gain_db":-30}"#, #"{"gain_db":30}"#, #"{"gain_db":0.5,"muted":false}"#, "{}", "[]", "6",
      #"{"muted":1}"#, #"{"muted":"yes"}"#, #"{"muted":null}"#, #"{"gain_db":"6"}"#, #"{"gain_db":false}"#,
      #"{"gain_db":30.5}"#, #"{"gain_db":-31}"#, #"{"gain_db":1e300}"#, #"{"muted":null,"gain_db":6}"#, #"{"gain":6}"#,
    ])
  func `the server takes the changes of sound that it allows, and no others`(body: String) throws {
    let document = try Self.document()
    let schemas = try #require((document["components"] as? Object)?["schemas"] as? [String: Object])
    let value = try JSONSerialization.jsonObject(with: Data(body.utf8), options: .fragmentsAllowed)
    let faults = Self.faults(value, ["$ref": "#/components/schemas/SoundChange"], schemas, at: "body")
    let served = try ServedControl()
    for route in ["/v1/audio", "/v1/cameras/camera/audio"] {
      let answer = try served.curl(["-X", "PUT", "-d", body], route)
      #expect(answer.status == (faults.isEmpty ? 200 : 400), "\(faults) \(answer.body)")
    }
  }

  @Test func `a change of sound without a body is refused, and so is any for a camera without sound`() throws {
    let document = try Self.document()
    let schemas = try #require((document["components"] as? Object)?["schemas"] as? [String: Object])
    let paths = try #require(document["paths"] as? [String: [String: Any]])
    for (camera, path) in [("camera", "/v1/audio"), ("silent", "/v1/audio"), ("silent", "/v1/cameras/{camera}/audio")] {
      let served = try ServedControl(cameras: [camera])
      let route = path.replacingOccurrences(of: "{camera}", with: camera)
      var refusals = [("put", try served.curl(["-X", "PUT"], route), 400)]
      if camera == "silent" {
        refusals.append(("get", try served.curl([], route), 503))
        refusals.append(("put", try served.curl(["-X", "PUT", "-d", #"{"muted":true}"#], route), 503))
      }
      for (method, answer, status) in refusals {
        #expect(answer.status == status, "\(method) \(route): \(answer.body)")
        let responses = try #require((paths[path]?[method] as? Object)?["responses"] as? Object)
        #expect(responses["\(status)"] != nil)
        let failure = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        #expect(Self.faults(failure, ["$ref": "#/components/schemas/Failure"], schemas, at: route) == [])
      }
    }
  }

  @Test func `its refusals with several cameras are the server's`() throws {
    let paths = try #require(try Self.document()["paths"] as? [String: Object])
    let served = try ServedControl(cameras: ["nursery", "garden"])
    for (path, item) in paths where !path.contains("{camera}") && !path.hasPrefix("/v1/phones") {
      for (method, operation) in item where method != "parameters" {
        let responses = try #require((operation as? Object)?["responses"] as? Object)
        let route = path.replacing("{event}", with: "1")
        let arguments = ["-X", method.uppercased()]
        let answer = try Self.isStream(path) ? served.stream(arguments, route) : served.curl(arguments, route)
        #expect((responses["409"] != nil) == (answer.status == 409), "\(method) \(path): \(answer.status)")
      }
    }
  }

  /// Returns the parts of `value` that are not as `schema` says: the part of JSON Schema that the document uses.
  private static func faults(_ value: Any, _ schema: Object, _ schemas: [String: Object], at place: String) -> [String]
  {
    if let reference = schema["$ref"] as? String {
      guard let target = reference.split(separator: "/").last.flatMap({ schemas[String($0)] }) else {
        return ["\(place): there is no \(reference)"]
      }
      return faults(value, target, schemas, at: place)
    }
    if let types = schema["type"] as? [String] {
      let all = types.map { Self.faults(value, ["type": $0], schemas, at: place) }
      return all.contains([]) ? [] : all.first ?? []
    }
    var faults: [String] = []
    if let allowed = schema["enum"] as? [any Hashable], let given = value as? any Hashable,
      !allowed.contains(where: { AnyHashable($0) == AnyHashable(given) })
    {
      faults.append("\(place): \(value) is none of \(allowed)")
    }
    let number = value as? NSNumber
    let isBoolean = number.map { CFGetTypeIDIsBoolean($0) } ?? false
    if let number, !isBoolean {
      if let least = schema["minimum"] as? NSNumber, number.doubleValue < least.doubleValue {
        faults.append("\(place): less than \(least)")
      }
      if let most = schema["maximum"] as? NSNumber, number.doubleValue > most.doubleValue {
        faults.append("\(place): more than \(most)")
      }
    }
    switch schema["type"] as? String {
    case "string": if !(value is String) { faults.append("\(place): no string") }
    case "null": if !(value is NSNull) { faults.append("\(place): not null") }
    case "boolean": if !isBoolean { faults.append("\(place): no boolean") }
    case "integer":
      if isBoolean || number == nil || number?.doubleValue != number?.doubleValue.rounded() {
        faults.append("\(place): no integer")
      }
    case "number": if isBoolean || number == nil { faults.append("\(place): no number") }
    case "array":
      guard let array = value as? [Any], let items = schema["items"] as? Object else { return ["\(place): no array"] }
      for (index, item) in array.enumerated() {
        faults += Self.faults(item, items, schemas, at: "\(place)[\(index)]")
      }
    case "object":
      guard let object = value as? Object else { return ["\(place): no object"] }
      let properties = schema["properties"] as? [String: Object] ?? [:]
      if let least = schema["minProperties"] as? Int, object.count < least { faults.append("\(place): too few fields") }
      for name in schema["required"] as? [String] ?? [] where object[name] == nil {
        faults.append("\(place): no \(name)")
      }
      for (name, member) in object {
        if let property = properties[name] ?? (schema["additionalProperties"] as? Object) {
          faults += Self.faults(member, property, schemas, at: "\(place).\(name)")
        } else {
          faults.append("\(place): \(name) is not described")
        }
      }
    default: faults.append("\(place): a type that is not checked")
    }
    return faults
  }

  /// Returns `true` if a number of JSON was written as `true` or `false`.
  private static func CFGetTypeIDIsBoolean(_ number: NSNumber) -> Bool {
    String(cString: number.objCType) == "c" || number is Bool && "\(number)" != "0" && "\(number)" != "1"
  }
}
