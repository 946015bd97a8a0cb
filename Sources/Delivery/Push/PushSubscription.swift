import Platform
import TLS

/// A browser that wants to be told of alerts while its page is closed, as `PushManager` describes it.
package struct PushSubscription: Hashable, Sendable {
  /// The URL at the push service, which is a secret: whoever has it reaches the browser.
  package let endpoint: String
  /// The endpoint in its parts.
  package let target: WebhookTarget
  /// The browser's public key, a point on P-256.
  package let publicKey: [UInt8]
  /// The browser's authentication secret.
  package let secret: [UInt8]
  /// The name of who has subscribed, as in `anna` or `phone anna`.
  package let owner: String
  /// The mark of that log-in, which is another one after a change of its password; nil without a log-in.
  package let login: String?

  /// The longest endpoint in bytes. Those of the known services have less than half of it.
  package static let endpointLimit = 1024
  /// The length of a secret in bytes (RFC 8291 section 3.2).
  package static let secretBytes = 16
  /// The longest texts of a public key and of a secret, with padding.
  private static let textLimits = (publicKey: 88, secret: 24)

  /// The reason why a subscription is refused.
  package enum Fault: Error, Hashable, Sendable {
    /// The endpoint is too long, or no URL `https://HOST/PATH`.
    case endpoint
    /// The endpoint is an address that no host of the internet has.
    case privateAddress
    /// The public key is no point on P-256.
    case publicKey
    /// The secret has another length.
    case secret
  }

  /// Checks the parts of a subscription, as a browser sends them.
  ///
  /// - Throws: ``Fault``.
  package init(endpoint: String, publicKey: String, secret: String, owner: String, login: String? = nil)
    throws(Fault)
  {
    guard endpoint.utf8.count <= Self.endpointLimit, let target = WebhookTarget(endpoint), target.isSecure else {
      throw .endpoint
    }
    // Each attempt looks a name up anew, and checks the address then.
    if let address = IPAddress(target.host), !address.isPublic { throw .privateAddress }
    guard publicKey.utf8.count <= Self.textLimits.publicKey, let point = Base64URL.bytes(publicKey),
      PrivateKey.isPoint(point)
    else { throw .publicKey }
    guard secret.utf8.count <= Self.textLimits.secret, let bytes = Base64URL.bytes(secret),
      bytes.count == Self.secretBytes
    else { throw .secret }
    (self.endpoint, self.target, self.owner, self.login) = (endpoint, target, owner, login)
    (self.publicKey, self.secret) = (point, bytes)
  }
}
