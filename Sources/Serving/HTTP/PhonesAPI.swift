import HTTPTypes
import Hummingbird
import NIOHTTP1
import Platform
import Streaming

/// The routes of the phones that may watch by a log-in of their own.
///
/// | request | body | answer |
/// |---|---|---|
/// | `GET /v1/phones` | | ``PhonesAnswer`` |
/// | `POST /v1/phones/codes` | `{"role":"view"}` | ``PhoneCodeAnswer`` |
/// | `POST /v1/phones` | `{"code":"…","name":"anna"}` | ``Phones/Login`` |
/// | `DELETE /v1/phones/{phone}` | | ``Phones/Phone``, without its log-in now |
///
/// All need the role ``Role/control`` but `POST /v1/phones`, which needs no log-in: it has a one-time code.
struct PhonesAPI: Sendable {
  let api: ControlAPI

  /// The methods that each path allows.
  static let routes: [String: [HTTPRequest.Method]] = [
    "/v1/phones": [.get, .head, .post], "/v1/phones/codes": [.post], "/v1/phones/{phone}": [.delete],
  ]

  /// Returns `true` for the request of a phone that has a one-time code and no log-in yet.
  static func isIntroduction(_ request: Request) -> Bool {
    request.method == .post && request.uri.path == "/v1/phones"
  }

  func add(to version: RouterGroup<ControlAPI.Context>) {
    version.add(.get, "phones", for: .control) { _, _ in
      ControlAPI.answer(PhonesAnswer(phones: try phones().list))
    }
    version.addChange(.post, "phones/codes") { request, context, what in
      let phones = try phones()
      let invitation = try await PhoneCodeRequest(json: api.body(of: request))
      let role = try invitation.checkedRole()
      what("role \(role.rawValue)")
      guard let base = Self.base(request, context) ?? api.target.pageURL else { throw HTTPRefusal.noPage }
      let code = phones.makeCode(role)
      let url = "\(base)/#phone=\(code)"
      return ControlAPI.answer(
        PhoneCodeAnswer(
          code: code, url: url, seconds: Int(OneTimeCodes.lifetime.seconds), role: role.rawValue,
          qr: try QRCode(url).rows))
    }
    version.add(.post, "phones", for: .read) { request, context in
      let phones = try phones()
      let asking = try await PhoneRequest(json: api.body(of: request))
      let name = try asking.checkedName()
      do {
        let login = try phones.add(name, code: asking.code)
        context.events?.add(
          .changed(
            ControlChange(
              who: .newPhone(name, Role(rawValue: login.role) ?? .unnamed), from: context.place,
              method: request.method.rawValue, path: request.uri.path, what: "a log-in for the phone \(login.name)",
              isDone: true)))
        return ControlAPI.answer(login)
      } catch let error as PhonesError {
        if error == .code { context.events?.loginFailed(from: context.peer.address ?? context.place) }
        throw HTTPRefusal.phones(error)
      }
    }
    version.addChange(.delete, "phones/:phone") { request, context, what in
      let phones = try phones()
      _ = try await api.body(of: request)
      let text = context.parameters.get("phone") ?? ""
      what(text)
      guard let name = try? UserName(text), let phone = phones.list.first(where: { $0.name == text }) else {
        throw HTTPRefusal.phones(.unknown(String(text.prefix(UserName.limit))))
      }
      do {
        try phones.remove(name)
        // At once, before another phone may get the name.
        let browsers = api.target.push?.removeAll(of: Requester.phoneName(name)) ?? 0
        if browsers > 0 { what("\(text), with \(browsers == 1 ? "a browser" : "\(browsers) browsers") told of alerts") }
      } catch let error as PhonesError {
        throw HTTPRefusal.phones(error)
      }
      return ControlAPI.answer(phone)
    }
  }

  private func phones() throws(HTTPRefusal) -> Phones {
    guard let phones = api.target.phones else { throw .noPage }
    return phones
  }

  /// Returns the address by which the request's browser knows this host, for another device: nil for a name that means
  /// each device itself.
  private static func base(_ request: Request, _ context: ControlContext) -> String? {
    guard context.peer.isEncrypted, let authority = request.head.authority, !RequestOrigin.hasOwnName(request) else {
      return nil
    }
    return "https://\(authority)"
  }
}

/// The answer to `GET /v1/phones`.
package struct PhonesAnswer: Codable, Sendable {
  /// The phones, in the order in which they came.
  package let phones: [Phones.Phone]
}

/// The answer to `POST /v1/phones/codes`.
package struct PhoneCodeAnswer: Codable, Sendable {
  /// The one-time code.
  package let code: String
  /// The address to open on the phone: the page, with the code.
  package let url: String
  /// The time in which the code can be used, in seconds.
  package let seconds: Int
  /// The phone's role.
  package let role: String
  /// The QR code of `url`: rows of modules, `1` for dark.
  package let qr: [String]
}

/// The body of `POST /v1/phones/codes`.
struct PhoneCodeRequest: ControlRequest {
  var role: String

  static let fields = [(name: "role", limit: "view or control")]
  static let example = #"{"role":"view"}"#

  init(_ role: Role) { self.role = role.rawValue }

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    role = try fields.decode(String.self, forKey: "role")
  }

  /// Returns the role.
  ///
  /// - Throws: ``ControlFailure`` for one that may not watch.
  func checkedRole() throws(ControlFailure) -> Role {
    guard let role = Role(rawValue: role), role >= .view else {
      let field = Self.fields[0]
      throw ControlFailure(
        "a phone's role is \(field.limit)", kind: .usage, field: field.name, value: String(self.role.prefix(40)),
        limit: field.limit)
    }
    return role
  }
}

/// The body of `POST /v1/phones`.
struct PhoneRequest: ControlRequest {
  var code: String
  var name: String

  static let fields = [
    (name: "code", limit: "the code of the link"), (name: "name", limit: "1 to \(UserName.limit) characters"),
  ]
  static let example = #"{"code":"iXq0vdWq1cGdDmUJ5M0L0w","name":"anna"}"#

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    code = try fields.decode(String.self, forKey: "code")
    name = try fields.decode(String.self, forKey: "name")
  }

  /// Returns the phone's name.
  ///
  /// - Throws: ``ControlFailure`` for an impossible one.
  func checkedName() throws(ControlFailure) -> UserName {
    do {
      return try UserName(name)
    } catch {
      throw ControlFailure(
        error.description, kind: .usage, field: "name", value: String(name.prefix(UserName.limit)),
        limit: Self.fields[1].limit)
    }
  }
}

extension HTTPRefusal {
  fileprivate static var noPage: HTTPRefusal {
    HTTPRefusal(
      status: .conflict,
      failure: ControlFailure(
        "no page is served that other devices reach: add a user with \(ServiceAccount.addingUser), and stream with --https",
        kind: .unavailable, field: "https"))
  }

  fileprivate static func phones(_ error: PhonesError) -> HTTPRefusal {
    let (status, field): (HTTPResponse.Status, String) =
      switch error {
      case .code: (.forbidden, "code")
      case .tooMany: (.tooManyRequests, "phones")
      case .unknown: (.notFound, "phone")
      }
    return HTTPRefusal(status: status, failure: ControlFailure("\(error)", kind: error.kind, field: field))
  }
}

extension ControlClient {
  /// Returns the phones that may watch.
  package func phones() throws -> Answer<PhonesAnswer> { try ask(.GET, "/v1/phones") }

  /// Makes a one-time code for a phone that gets `role`.
  package func makePhoneCode(_ role: Role) throws -> Answer<PhoneCodeAnswer> {
    try ask(.POST, "/v1/phones/codes", PhoneCodeRequest(role))
  }

  /// Shuts a phone out.
  package func removePhone(_ name: UserName) throws -> Answer<Phones.Phone> {
    try ask(.DELETE, "/v1/phones/\(Self.encoded("\(name)"))")
  }
}
