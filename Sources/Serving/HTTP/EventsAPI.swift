package import Alerts
import HTTPTypes
import Hummingbird
import NIOCore
import Platform

/// The routes of the events: alerts that begin, end and are acknowledged.
///
/// | request | body | answer |
/// |---|---|---|
/// | `GET /v1/events?after=N` | | `text/event-stream`: each event from now on, or after the one with the number N |
/// | `GET /v1/events/history?limit=N` | | ``EventsAnswer`` |
/// | `POST /v1/events/ack` | `{"id":12}`, or `{}` for all | ``EventsAnswer`` with the new events |
/// | `GET /v1/events/{event}/before.jpg` and `after.jpg` | | a JPEG |
///
/// Reading needs the role ``Role/read``, and pictures need ``Role/view``. A client that has lost its connection sends the number of the last event that
/// it has as `Last-Event-ID`, as browsers do, and gets the events since then
/// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
struct EventsAPI: Sendable {
  let api: ControlAPI

  /// The methods that each path allows.
  static let routes: [String: [HTTPRequest.Method]] = [
    "/v1/events": [.get, .head], "/v1/events/history": [.get, .head], "/v1/events/ack": [.post],
    "/v1/events/{event}/before.jpg": [.get, .head], "/v1/events/{event}/after.jpg": [.get, .head],
  ]

  /// The time between two comments in a stream without events: shorter than the server's idle limit.
  private static let heartbeat = Duration(seconds: 5)
  /// The most unsent bytes of a client. An event that waits behind them waits in the history, which is bounded.
  private static let unsentBytes = 16 << 10
  private static let type = "text/event-stream"

  func add(to version: RouterGroup<ControlAPI.Context>) {
    version.add(.head, "events", for: .read) { request, context in
      _ = try start(of: request)
      var response = Response(status: .ok, headers: HTTPFields.unstored(Self.type, context), body: ResponseBody())
      // The answer to GET has no length (RFC 9110 section 8.6).
      response.headers[.contentLength] = nil
      return response
    }
    version.add(.get, "events", for: .read) { request, context in try stream(request, context) }
    version.add(.get, "events/history", for: .read) { request, _ in
      let history = api.target.alerts
      let limit = try Self.number("limit", of: request, within: 1...UInt64(AlertHistory.limit))
      let events = history.newest(limit.map(Int.init) ?? AlertHistory.limit).map(history.illustrated)
      return ControlAPI.answer(EventsAnswer(events: events, isKept: history.path != nil))
    }
    version.addChange(.post, "events/ack") { request, context, what in
      let acknowledgement = try await AcknowledgementRequest(json: api.body(of: request))
      what(acknowledgement.id.map { "\($0)" } ?? "all")
      let history = api.target.alerts
      let (id, name) = (acknowledgement.id, context.requester.name)
      let alerts = try await onThread { try history.acknowledge(id, by: name) }
      return ControlAPI.answer(EventsAnswer(events: alerts, isKept: history.path != nil))
    }
    for moment in AlertPictures.Moment.allCases {
      version.add(.get, "events/:event/\(moment.rawValue).jpg", for: .view) { _, context in
        try await picture(moment, context)
      }
    }
  }

  private func picture(_ moment: AlertPictures.Moment, _ context: ControlContext) async throws -> Response {
    let text = context.parameters.get("event") ?? ""
    guard text.utf8.count <= 20, let id = UInt64(text) else {
      throw HTTPRefusal.eventNumber("event", String(text.prefix(40)), "the number of an event")
    }
    let pictures = api.target.alerts.pictures
    guard let bytes = try await onThread({ pictures.picture(moment, of: id) }) else {
      throw HTTPRefusal.noPicture(moment, of: id)
    }
    return Response(
      status: .ok, headers: HTTPFields.unstored("image/jpeg", context),
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  /// Returns the number of the last event that the client has; nil for a client that wants new ones only.
  private func start(of request: Request) throws(HTTPRefusal) -> UInt64? {
    if let text = HTTPField.Name("Last-Event-ID").flatMap({ request.headers[$0] }), !text.isEmpty {
      guard let number = UInt64(text.prefix(20)), text.utf8.count <= 20 else {
        throw .eventNumber("Last-Event-ID", String(text.prefix(40)), "the number of an event")
      }
      return number
    }
    return try Self.number("after", of: request, within: 0...UInt64.max)
  }

  private static func number(
    _ name: Substring, of request: Request, within limits: ClosedRange<UInt64>
  ) throws(HTTPRefusal) -> UInt64? {
    guard let text = request.uri.queryParameters[name] else { return nil }
    guard text.utf8.count <= 20, let number = UInt64(text), limits.contains(number) else {
      let limit = limits.upperBound == .max ? "the number of an event" : "\(limits.lowerBound) to \(limits.upperBound)"
      throw .eventNumber(String(name), String(text.prefix(40)), limit)
    }
    return number
  }

  private func stream(_ request: Request, _ context: ControlContext) throws -> Response {
    let history = api.target.alerts
    let first = try start(of: request) ?? history.lastID
    if let refusal = context.admitStream() { throw refusal }
    let body = ResponseBody { writer in
      var last = first
      await context.keepUnsent(Self.unsentBytes)
      // Two seconds is a browser's time before it connects again.
      try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
      while context.isStillAllowed(.read) {
        let part = await history.changes.value(by: .now() + Self.heartbeat) { [last] in
          let part = history.after(last)
          return part.alerts.isEmpty ? nil : part
        }
        try Task.checkCancellation()
        // Meanwhile the client may have been shut out.
        guard context.isStillAllowed(.read) else { break }
        guard let part else {
          try await writer.write(ByteBuffer(string: ":\n\n"))
          continue
        }
        var text = ByteBuffer()
        if part.missed > 0 { text.writeString("event: dropped\ndata: {\"count\":\(part.missed)}\n\n") }
        for alert in part.alerts {
          text.writeString("id: \(alert.id)\nevent: \(alert.state.rawValue)\ndata: ")
          // The JSON is one line, with its end.
          text.writeBytes(ControlJSON.encode(history.illustrated(alert)))
          text.writeString("\n")
          last = alert.id
        }
        // Returns once the client has taken what was written before, but for the bytes above.
        try await writer.write(text)
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: HTTPFields.unstored(Self.type, context), body: body)
  }
}

/// The answer to `GET /v1/events/history` and `POST /v1/events/ack`.
package struct EventsAnswer: Codable, Sendable {
  /// The events, oldest first.
  package let events: [Alert]
  /// `true` if the history is in a file, and survives the program.
  package let kept: Bool

  init(events: [Alert], isKept: Bool) { (self.events, kept) = (events, isKept) }
}

/// The body of `POST /v1/events/ack`.
struct AcknowledgementRequest: ControlRequest {
  var id: UInt64?

  static let fields = [(name: "id", limit: "the number of an event with which an alert began")]
  static let example = #"{"id":12}"#

  init(id: UInt64?) { self.id = id }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    // A null is of the wrong type, here as in the other requests.
    id = try fields.contains("id") ? fields.decode(UInt64.self, forKey: "id") : nil
  }
}

extension HTTPRefusal {
  fileprivate static func eventNumber(_ name: String, _ value: String, _ limit: String) -> HTTPRefusal {
    HTTPRefusal(
      status: .badRequest,
      failure: ControlFailure(
        "\(name)=\(value): write \(limit)", kind: .usage, field: name, value: value, limit: limit))
  }

  fileprivate static func noPicture(_ moment: AlertPictures.Moment, of id: UInt64) -> HTTPRefusal {
    HTTPRefusal(
      status: .notFound,
      failure: ControlFailure(
        "there is no picture of \(moment.rawValue) the alert of event \(id): nightjar ctl events lists those that there are",
        kind: .noInput, field: "event", value: "\(id)"))
  }
}
