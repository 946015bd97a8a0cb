import FoundationEssentials
import Media
import Platform

/// The body of a request: a JSON object with known fields and no others.
protocol ControlRequest: Codable {
  /// The fields, each with its allowed values.
  static var fields: [(name: String, limit: String)] { get }
  /// A complete body, for messages.
  static var example: String { get }

  init(fields: KeyedDecodingContainer<FieldName>) throws
}

/// The name of any field.
struct FieldName: CodingKey, ExpressibleByStringLiteral {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }
  init(stringLiteral: String) { stringValue = stringLiteral }
  init?(intValue: Int) { nil }
}

extension KeyedDecodingContainer<FieldName> {
  /// Returns a whole number. For 90.5 as `Int`, the decoder reports only that something is wrong somewhere.
  fileprivate func wholeNumber(_ name: FieldName) throws -> Int {
    guard let number = Int(exactly: try decode(Double.self, forKey: name)) else {
      throw DecodingError.dataCorruptedError(forKey: name, in: self, debugDescription: "not a whole number")
    }
    return number
  }
}

extension ControlRequest {
  /// Reads a body.
  ///
  /// - Throws: ``ControlFailure``.
  init(json: [UInt8]) throws(ControlFailure) {
    do {
      self = try JSONDecoder().decode(Body<Self>.self, from: Data(json)).request
    } catch let failure as ControlFailure {
      throw failure
    } catch let error as DecodingError {
      throw Self.failure(error)
    } catch {
      throw Self.noObject
    }
  }

  private static var noObject: ControlFailure {
    ControlFailure("the body is not a JSON object: send one such as \(example)", kind: .usage, limit: example)
  }

  private static func failure(_ error: DecodingError) -> ControlFailure {
    let name: String?
    switch error {
    case .keyNotFound(let key, _): name = key.stringValue
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
      name = context.codingPath.first?.stringValue
    @unknown default: name = nil
    }
    guard let field = fields.first(where: { $0.name == name }) else { return noObject }
    let isMissing = if case .keyNotFound = error { true } else { false }
    return ControlFailure(
      "\(field.name) is \(isMissing ? "missing" : "of the wrong type"): send \(field.limit), as in \(example)",
      kind: .usage, field: field.name, limit: field.limit)
  }
}

/// Refuses unknown fields, which a synthesized decoder would ignore.
private struct Body<Request: ControlRequest>: Decodable {
  let request: Request

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: FieldName.self)
    let known = Request.fields.map(\.name)
    for key in container.allKeys where !known.contains(key.stringValue) {
      let name = String(key.stringValue.prefix(40))
      let limit = known.joined(separator: ", ")
      throw ControlFailure(
        "there is no field '\(name)': choose one of \(limit)", kind: .usage, field: name, limit: limit)
    }
    request = try Request(fields: container)
  }
}

/// The body of `PUT /v1/orientation`, and of its answer.
struct OrientationRequest: ControlRequest {
  var degrees: Int
  var mirrored: Bool

  static let fields = [(name: "degrees", limit: "0, 90, 180 or 270"), (name: "mirrored", limit: "true or false")]
  static let example = #"{"degrees":90,"mirrored":false}"#

  init(_ orientation: Orientation) {
    degrees = orientation.rotation.degrees
    mirrored = orientation.isMirrored
  }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    degrees = try fields.wholeNumber("degrees")
    mirrored = try fields.contains("mirrored") ? fields.decode(Bool.self, forKey: "mirrored") : false
  }

  /// Returns the orientation.
  ///
  /// - Throws: ``ControlFailure`` if the angle is none of the four.
  func orientation() throws(ControlFailure) -> Orientation {
    do {
      return try Orientation(degrees: degrees, mirrored: mirrored)
    } catch {
      throw ControlFailure(
        error.description, kind: .usage, field: "degrees", value: "\(degrees)", limit: Self.fields[0].limit)
    }
  }
}

/// The body of `PUT /v1/bitrate`, and of its answer.
struct BitrateRequest: ControlRequest {
  var bitsPerSecond: Int

  private enum CodingKeys: String, CodingKey {
    // The spelling that the strategy of ``ControlJSON`` expects.
    case bitsPerSecond
  }

  private static let limits = EncoderConfiguration.bitrateLimits
  static let fields = [(name: "bits_per_second", limit: "\(limits.lowerBound) to \(limits.upperBound)")]
  static let example = #"{"bits_per_second":2500000}"#

  init(_ bitsPerSecond: Int) {
    self.bitsPerSecond = bitsPerSecond
  }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    bitsPerSecond = try fields.wholeNumber("bits_per_second")
  }

  /// Returns the bitrate.
  ///
  /// - Throws: ``ControlFailure`` if no encoder supports it.
  func checked() throws(ControlFailure) -> Int {
    guard Self.limits.contains(bitsPerSecond) else {
      let field = Self.fields[0]
      throw ControlFailure(
        "a bitrate of \(bitsPerSecond) bits a second: choose \(field.limit)", kind: .usage, field: field.name,
        value: "\(bitsPerSecond)", limit: field.limit)
    }
    return bitsPerSecond
  }
}

/// The answer to `POST /v1/keyframe`.
struct KeyFrameAnswer: Codable {
  var keyFrame = "requested"
}

/// The body of `POST /v1/destinations` and `DELETE /v1/destinations`.
struct DestinationRequest: ControlRequest {
  var url: String

  static let fields = [(name: "url", limit: "rtp://HOST:PORT")]
  static let example = #"{"url":"rtp://192.0.2.7:5004"}"#

  init(_ url: String) {
    self.url = url
  }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    url = try fields.decode(String.self, forKey: "url")
  }

  /// Refuses a URL that names a file of this machine.
  ///
  /// - Throws: ``ControlFailure`` for such a URL.
  func refuseFiles() throws(ControlFailure) {
    guard url.lowercased().contains("key-file") else { return }
    throw ControlFailure(
      "only the control socket may name a key-file of this host: leave it out for a new key",
      kind: .noPermission, field: "url", value: "key-file")
  }
}

/// The answer to `POST /v1/destinations`.
struct DestinationAnswer: Codable {
  var url: String
  var sessionDescription: String
}
