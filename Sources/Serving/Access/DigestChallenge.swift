/// The value of one `WWW-Authenticate` header, RFC 7616 section 3.3.
struct DigestChallenge: CustomStringConvertible {
  let nonce: [UInt8]
  let algorithm: DigestAlgorithm
  let isStale: Bool

  /// The realm, the nonce and `stale` in this order, because live555 reads them by position; a client that knows no
  /// `qop` answers without it.
  var description: String {
    "Digest realm=\"\(UsersFile.realm)\", nonce=\"\(String(decoding: nonce, as: UTF8.self))\", "
      + (isStale ? "stale=true, " : "") + "algorithm=\(algorithm.rawValue), qop=\"auth\""
  }
}
