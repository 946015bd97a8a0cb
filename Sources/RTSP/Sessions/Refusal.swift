public import Platform

/// The reason why a request is not carried out.
public enum Refusal: Failure, Hashable {
  /// A version other than RTSP/1.0.
  case version(ProtocolVersion)
  /// No `CSeq`, two of them, or one that is no number of 1…20 digits.
  case sequenceNumber(String?)
  /// A method outside the RFC.
  case unknownMethod(String)
  /// A method of the RFC that is not served.
  case method(RequestMethod)
  /// Options in `Require` that the server does not have.
  case options([String])
  /// A URI that cannot be parsed.
  case url(RequestURLError)
  /// A method that needs a path, without one.
  case noPath(RequestMethod)
  /// A path that is not served.
  case path(String)
  /// A stream that the presentation does not have.
  case track(Int, of: Int)
  /// `Accept` without `application/sdp`.
  case accept(String)
  /// A `Transport` without a usable transport.
  case transport(TransportError)
  /// A range that a camera cannot play.
  case range(PlayRangeError)
  /// No `Session`, or one that is unknown, has timed out, or belongs to another client or path.
  case session(String?)
  /// A method that is not valid in the session's state.
  case state(SessionState, RequestMethod)
  /// SETUP of a presentation with more than one stream, or of a second presentation in one session.
  case aggregate(String)
  /// PLAY or PAUSE of only one of a session's streams.
  case onlyAggregate(track: Int)
  /// Parameters that the server does not have.
  case parameters
  /// The maximum number of sessions is reached.
  case sessions(limit: Int)
  /// The maximum number of sessions of one address is reached.
  case sessionsPerAddress(limit: Int)

  /// The status of the response.
  public var status: ResponseStatus {
    switch self {
    case .version: .versionNotSupported
    case .sequenceNumber, .url, .noPath: .badRequest
    case .unknownMethod: .notImplemented
    case .method: .methodNotAllowed
    case .options: .optionNotSupported
    case .path, .track: .notFound
    case .accept: .notAcceptable
    case .transport(let error): error.status
    case .range(let error): error.status
    case .session: .sessionNotFound
    case .state: .methodNotValidInThisState
    case .aggregate: .aggregateNotAllowed
    case .onlyAggregate: .onlyAggregateAllowed
    case .parameters: .parameterNotUnderstood
    case .sessions, .sessionsPerAddress: .serviceUnavailable
    }
  }

  /// The additional header fields of the response.
  var headers: [HeaderFields.Field] {
    switch self {
    case .method: [.init("Allow", RequestMethod.served.map(\.description).joined(separator: ", "))]
    case .unknownMethod: [.init("Public", RequestMethod.served.map(\.description).joined(separator: ", "))]
    case .state(let state, _): [.init("Allow", state.methods.map(\.description).joined(separator: ", "))]
    case .options(let options): [.init("Unsupported", options.joined(separator: ", "))]
    default: []
    }
  }

  /// `true` if the session that the request names exists.
  var isOfSession: Bool {
    switch self {
    case .state, .onlyAggregate, .range, .parameters: true
    default: false
    }
  }

  /// A one-line description for the log.
  public var description: String {
    switch self {
    case .version(let version): "a request of \(version): only \(ProtocolVersion.rtsp1) is supported"
    case .sequenceNumber(let text):
      text.map { "a CSeq of \(excerpt($0)): one number of 1 to \(Request.sequenceNumberDigits) digits" }
        ?? "a request without a CSeq; send one number"
    case .unknownMethod(let name): "the method \(excerpt(name)) is unknown to RTSP 1.0"
    case .method(let method): "\(method) is not served: this server only sends"
    case .options(let options): "the options \(excerpt(options.joined(separator: ", "))) are required but not supported"
    case .url(let error): error.description
    case .noPath(let method): "\(method) of '*'; name a path"
    case .path(let path): "there is no stream at \(excerpt(path)); request the camera's path"
    case .track(let track, let count): "no stream \(RequestURL.trackPrefix)\(track): there are \(count), from 0 on"
    case .accept(let text): "a description as \(excerpt(text)): only application/sdp is written"
    case .transport(let error): error.description
    case .range(let error): error.description
    case .session(let text):
      text.map { "no session \(excerpt($0)) of this client and path; set it up" } ?? "a request without its Session"
    case .state(let state, let method): "\(method) in a session that is \(state)"
    case .aggregate(let path): "SETUP of \(excerpt(path)) in this session; set up its streams one by one"
    case .onlyAggregate(let track): "a session's streams start and stop together, not \(track) alone; name its path"
    case .parameters: "parameters in GET_PARAMETER or SET_PARAMETER; there are none, send no body"
    case .sessions(let limit): "all \(limit) sessions are in use; try again later"
    case .sessionsPerAddress(let limit): "all \(limit) sessions of this address are in use; close one"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind {
    switch self {
    case .sessions, .sessionsPerAddress: .temporary
    default: .data
    }
  }
}
