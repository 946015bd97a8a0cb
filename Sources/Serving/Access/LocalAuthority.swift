import Platform
import TLS

/// The certificate authority of this host, which signs the host's own certificate. A phone that trusts it shows no
/// warning, also after the host's certificate was renewed or the host has got another address.
///
/// The authority is constrained to the host's names and to addresses of private networks (RFC 5280 section 4.2.1.10):
/// whoever steals its key can take the place of no bank.
package struct LocalAuthority: Sendable {
  private let certificate: Certificate
  private let key: PrivateKey
  /// The certificate in DER, for devices that shall trust it.
  package let der: [UInt8]

  /// The file's name in the state directory.
  package static let fileName = "authority.pem"
  /// The subject's common name, but for the host's name at the end.
  private static let title = "nightjar on "
  /// The validity of the authority in days.
  private static let days: Int64 = 3650
  /// The validity of a host's certificate in days. Apple's devices refuse more than 825.
  private static let hostDays: Int64 = 820
  /// The time before its end at which a host's certificate is replaced, in days.
  private static let renewalDays: Int64 = 90
  private static let secondsPerDay: Int64 = 86_400

  /// The networks whose addresses no other host of the internet has: loopback, RFC 1918, shared (RFC 6598, as some VPNs
  /// use), link-local, and unique local addresses of IPv6 (RFC 4193).
  private static let networks = [
    "127.0.0.0/255.0.0.0", "10.0.0.0/255.0.0.0", "172.16.0.0/255.240.0.0", "192.168.0.0/255.255.0.0",
    "100.64.0.0/255.192.0.0", "169.254.0.0/255.255.0.0", "::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fc00::/fe00::",
  ]

  private init(certificate: Certificate, key: PrivateKey) throws(OpenSSLError) {
    (self.certificate, self.key) = (certificate, key)
    der = try certificate.der
  }

  /// Loads the authority in `directory`; nil if there is none.
  ///
  /// - Throws: ``TLSIdentityError``.
  package init?(directory: String = StandardPaths.stateDirectory) throws(TLSIdentityError) {
    let path: String
    let identity: TLSIdentity
    do throws(PrivateFileError) {
      path = try PrivateFile("\(directory)/\(Self.fileName)").path
    } catch {
      throw .file(error)
    }
    do throws(TLSIdentityError) {
      identity = try TLSIdentity(certificateFile: path, keyFile: path)
    } catch .file(.missing) {
      return nil
    }
    do {
      try self.init(
        certificate: Certificate(der: identity.certificate), key: PrivateKey(pem: Array(identity.privateKey.utf8)))
    } catch {
      throw .certificate(path: path, reason: TLSIdentity.reason(error))
    }
  }

  /// Returns the authority in `directory`, and makes it if there is none: mode 0600, and the directory 0700 if that is
  /// missing too.
  ///
  /// - Parameter now: in seconds of Unix time.
  /// - Throws: ``TLSIdentityError``.
  package static func make(
    directory: String = StandardPaths.stateDirectory, names: HostNames = .ofMachine, at now: Int64
  ) throws(TLSIdentityError) -> (authority: LocalAuthority, isNew: Bool) {
    do {
      let file = try PrivateFile("\(directory)/\(fileName)")
      try file.makeDirectory(mode: 0o700)
      let lock = try FileLock(beside: file)
      defer { withExtendedLifetime(lock) {} }
      if let kept = try LocalAuthority(directory: directory) { return (kept, false) }
      let key = try PrivateKey()
      let certificate = try Certificate.authority(
        title + (names.names.first ?? "localhost"),
        // A name of a home network (RFC 6762) may change; any other is that of now.
        names: [names.names.first ?? "localhost", "local", "localhost"], networks: networks,
        validity: (now - secondsPerDay)...(now + days * secondsPerDay), key: key)
      try file.replace(with: Array((try key.pem + certificate.pem).utf8), mode: 0o600, former: nil)
      return (try LocalAuthority(certificate: certificate, key: key), true)
    } catch let error as PrivateFileError {
      throw .file(error)
    } catch let error as TLSIdentityError {
      throw error
    } catch {
      throw .making(reason: TLSIdentity.reason(error))
    }
  }

  /// The SHA-256 of the certificate, as ``TLSIdentity/fingerprint``.
  package var fingerprint: String { TLSIdentity.fingerprint(of: der) }

  /// The certificate in PEM, for computers.
  package var pem: String { (try? certificate.pem) ?? "" }

  /// Returns `true` if the authority has signed `identity`, and that need not be replaced: it is for the host's present
  /// names and addresses, and valid for some time yet.
  func isCurrent(_ identity: TLSIdentity, names: HostNames, at now: Int64) -> Bool {
    guard let host = try? Certificate(der: identity.certificate), host.isIssued(by: certificate) else { return false }
    return now >= identity.notBefore && now < identity.notAfter - Self.renewalDays * Self.secondsPerDay
      && permitted(names.names).allSatisfy { host.isFor(name: $0) }
      && Self.permitted(names.addresses).allSatisfy { host.isFor(address: $0) }
  }

  /// Signs a certificate for the host, with a new key.
  func issue(names: HostNames, at now: Int64) throws(OpenSSLError) -> TLSIdentity {
    let key = try PrivateKey()
    let host = try Certificate.server(
      .init(
        commonName: names.names.first ?? "localhost", names: permitted(names.names),
        addresses: Self.permitted(names.addresses),
        // A phone's clock may be behind.
        validity: (now - Self.secondsPerDay)...(now + Self.hostDays * Self.secondsPerDay)),
      key: key, issuer: .init(certificate, key: self.key))
    return try TLSIdentity(chain: [host, certificate], key: key)
  }

  /// Returns those of the names that the authority may sign for: the host may have got another one since.
  private func permitted(_ names: [String]) -> [String] {
    let own = certificate.commonName.dropFirst(Self.title.count)
    return names.filter { $0 == own || $0 == "localhost" || $0.hasSuffix(".local") }
  }

  /// Returns those of the addresses that the authority may sign for.
  private static func permitted(_ addresses: [[UInt8]]) -> [[UInt8]] {
    addresses.filter { address in
      switch (address.count, address[0], address[1]) {
      case (4, 127, _), (4, 10, _), (4, 172, 16...31), (4, 192, 168), (4, 100, 64...127), (4, 169, 254): true
      case (16, 0xFC...0xFD, _): true
      case (16, _, _): IPAddress(bytes: address)?.isLoopback == true
      default: false
      }
    }
  }
}
