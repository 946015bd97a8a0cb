import HTTPTypes
import Hummingbird
import NIOHTTP1
import Platform

/// The route of a stream's sound.
struct SoundAPI: Sendable {
  let api: ControlAPI

  /// The methods that each path below a camera allows.
  static let orders: [String: [HTTPRequest.Method]] = ["audio": [.get, .head, .put]]

  func add(to group: RouterGroup<ControlAPI.Context>) {
    group.add(.get, "audio", for: .read) { _, context in
      ControlAPI.answer(try api.camera(context).sound())
    }
    group.addChange(.put, "audio") { request, context, what in
      let camera = try api.camera(context)
      let change = try await SoundRequest(json: api.body(of: request))
      what(change.text)
      return ControlAPI.answer(try camera.changeSound(muted: change.muted, gain: change.checkedGain()))
    }
  }
}

/// A stream whose sound the control API shows and changes.
package protocol SoundTarget: Sendable {
  /// Returns the state of the sound.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets, for a stream without sound.
  func sound() throws -> StreamStatus.Sound

  /// Mutes the sound, or sets its gain in dB; what is nil stays. Returns the state afterwards.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets, for a stream without sound.
  func changeSound(muted: Bool?, gain: Double?) throws -> StreamStatus.Sound
}

/// The body of `PUT /v1/cameras/{camera}/audio`: one of its fields at least.
struct SoundRequest: ControlRequest {
  var muted: Bool?
  var gainDb: Double?

  private static let gains = -30.0...30.0
  static let fields = [
    (name: "muted", limit: "true or false"), (name: "gain_db", limit: "a number from -30 to 30"),
  ]
  static let example = #"{"muted":true}"#

  init(muted: Bool? = nil, gain: Double? = nil) { (self.muted, gainDb) = (muted, gain) }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    // A null is of the wrong type, here as in the other requests.
    muted = try fields.contains("muted") ? fields.decode(Bool.self, forKey: "muted") : nil
    gainDb = try fields.contains("gain_db") ? fields.decode(Double.self, forKey: "gain_db") : nil
    guard muted != nil || gainDb != nil else {
      throw DecodingError.keyNotFound(
        FieldName(stringLiteral: "muted"), .init(codingPath: [], debugDescription: "neither field"))
    }
  }

  private enum CodingKeys: String, CodingKey {
    case muted
    case gainDb = "gain_db"
  }

  /// The change in words, for the log.
  var text: String {
    [muted.map { $0 ? "muted" : "not muted" }, gainDb.map { "\($0) dB" }].compactMap { $0 }.joined(separator: ", ")
  }

  /// Returns the gain.
  ///
  /// - Throws: ``ControlFailure`` for one beyond the limits.
  func checkedGain() throws(ControlFailure) -> Double? {
    guard let gainDb else { return nil }
    guard Self.gains.contains(gainDb) else {
      let field = Self.fields[1]
      throw ControlFailure(
        "a gain of \(gainDb) dB: choose \(field.limit)", kind: .usage, field: field.name, value: "\(gainDb)",
        limit: field.limit)
    }
    return gainDb
  }
}

extension ControlClient {
  /// Returns the state of the sound.
  package func sound() throws -> Answer<StreamStatus.Sound> { try ask(.GET, route("audio")) }

  /// Mutes the sound, or sets its gain in dB; what is nil stays.
  package func changeSound(muted: Bool? = nil, gain: Double? = nil) throws -> Answer<StreamStatus.Sound> {
    try ask(.PUT, route("audio"), SoundRequest(muted: muted, gain: gain))
  }
}
