import HTTPTypes
import Hummingbird
import Platform

/// A refusal that has an HTTP status of its own.
struct HTTPRefusal: Error {
  let status: HTTPResponse.Status
  let failure: ControlFailure
  /// Additional headers.
  var headers: HTTPFields = [:]

  var response: Response {
    var response = ControlAPI.answer(failure, status: status)
    response.headers.append(contentsOf: headers)
    return response
  }

  static func tooLarge(limit: Int) -> HTTPRefusal {
    let text = "the body is larger than \(limit) bytes: send only the fields of this request"
    return HTTPRefusal(
      status: .contentTooLarge, failure: ControlFailure(text, kind: .usage, field: "body", limit: "\(limit)"))
  }

  /// The time to wait before the next request if there are too many connections, in seconds.
  static let retryAfter = 10

  static func tooManyStreams(limit: Int) -> HTTPRefusal {
    HTTPRefusal(
      status: .tooManyRequests,
      failure: ControlFailure(
        "more than \(limit) streams of pictures or sound at a time: end one of them. /snapshot.jpg needs no stream",
        kind: .temporary, field: "streams", limit: "\(limit)"), headers: [.retryAfter: "\(retryAfter)"])
  }

  static func noCamera(_ name: String, of names: [String]) -> HTTPRefusal {
    let limit = names.joined(separator: ", ")
    let given = String(name.prefix(64))
    guard !names.contains(name) else {
      return HTTPRefusal(
        status: .serviceUnavailable,
        failure: ControlFailure(
          "camera '\(given)' does not stream now; the log says why, and nightjar tries again", kind: .unavailable,
          field: "camera", value: given))
    }
    let text =
      names.isEmpty ? "there is no camera now" : "there is no camera '\(given)': choose one of \(limit)"
    return HTTPRefusal(
      status: .notFound, failure: ControlFailure(text, kind: .noInput, field: "camera", value: given, limit: limit))
  }

  static func severalCameras(_ names: [String]) -> HTTPRefusal {
    let limit = names.joined(separator: ", ")
    return HTTPRefusal(
      status: .conflict,
      failure: ControlFailure(
        "there are several cameras: name one of \(limit); by ctl with --camera \(names.first ?? ""), by HTTP as in "
          + "/v1/cameras/\(names.first ?? "")/…, pictures as in /cameras/\(names.first ?? "")/snapshot.jpg",
        kind: .usage, field: "camera", limit: limit))
  }
}

extension FailureKind {
  /// The HTTP status for this kind.
  var status: HTTPResponse.Status {
    switch self {
    case .usage, .data: .badRequest
    case .noInput, .noHost: .notFound
    case .noPermission: .forbidden
    case .unavailable, .temporary: .serviceUnavailable
    case .software, .system, .cannotCreate, .inputOutput: .internalServerError
    }
  }
}
