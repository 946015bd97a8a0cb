import CLinux
import Glibc
import Platform
import TLS

/// The machine's own certificate, created at the first start and kept. A viewer that has compared its fingerprint once
/// recognizes the machine again.
///
/// The certificate contains the names and addresses that the machine had then. A machine that gets another address
/// keeps it: a new fingerprint would be the greater nuisance. Where the host has an authority (``LocalAuthority``), that
/// signs the certificate, and a new one for each address.
package struct SelfSignedIdentity: Sendable {
  /// The origin of the certificate, which explains a fingerprint that has changed.
  package enum Origin: Hashable, Sendable {
    /// The certificate was kept.
    case kept
    /// There was no certificate.
    case first
    /// The former certificate had expired, at this second of Unix time.
    case expired(Int64)
    /// The former certificate could not be read, or other users could read it: the reason.
    case replaced(String)
    /// The host's authority has signed a new one: the first, or one for other addresses or a later time.
    case issued
  }

  /// The certificate and its key.
  package let identity: TLSIdentity
  /// The path of the one file for both, so that they are replaced together.
  package let path: String
  /// The origin of the certificate.
  package let origin: Origin

  /// The file's name in the state directory.
  package static let fileName = "tls-identity.pem"
  /// The validity in days.
  package static let days: Int64 = 3650

  /// Loads the identity in `directory`, or creates it: mode 0600, and the directory 0700 if that is missing too.
  ///
  /// - Parameter now: in seconds of Unix time.
  /// - Throws: ``TLSIdentityError``; not for a kept one that is broken, which is replaced.
  package init(
    directory: String = StandardPaths.stateDirectory, names: HostNames = .ofMachine, at now: Int64
  ) throws(TLSIdentityError) {
    do {
      let file = try PrivateFile("\(directory)/\(Self.fileName)")
      path = file.path
      try file.makeDirectory(mode: 0o700)
      // Two programs that start for the first time at once take the same one.
      let lock = try FileLock(beside: file)
      defer { withExtendedLifetime(lock) {} }
      let authority = try LocalAuthority(directory: directory)
      var origin: Origin
      do throws(TLSIdentityError) {
        var kept = try TLSIdentity(certificateFile: path, keyFile: path)
        let isCurrent = authority?.isCurrent(kept, names: names, at: now)
        if case .expired(let end) = kept.validity(at: now) {
          origin = .expired(end)
        } else if isCurrent == false {
          origin = .issued
        } else {
          kept.authority = authority?.der
          identity = kept
          self.origin = .kept
          return
        }
      } catch .file(.missing) {
        origin = .first
      } catch .file(.exposed(let path, let mode)) {
        // The key must be treated as known to others.
        origin = .replaced(PrivateFileError.exposed(path: path, mode: mode).description)
      } catch .file(let error) {
        throw TLSIdentityError.file(error)
      } catch {
        origin = .replaced(error.description)
      }
      var made = try authority?.issue(names: names, at: now) ?? Self.make(names: names, at: now)
      made.authority = authority?.der
      try file.replace(with: Array((made.privateKey + made.certificates).utf8), mode: 0o600, former: nil)
      identity = made
      self.origin = origin
    } catch let error as PrivateFileError {
      throw .file(error)
    } catch let error as TLSIdentityError {
      throw error
    } catch {
      throw .making(reason: TLSIdentity.reason(error))
    }
  }

  /// Creates a server's self-signed certificate, RFC 5280, with a new P-256 key.
  private static func make(names: HostNames, at now: Int64) throws(OpenSSLError) -> TLSIdentity {
    let key = try PrivateKey()
    // A machine without a battery starts in 1970 and gets the time later: the certificate must not have expired by
    // then.
    let start = max(now, earliestStart)
    let certificate = try Certificate.server(
      .init(
        commonName: names.names.first ?? "localhost", names: names.names, addresses: names.addresses,
        // A viewer's clock may be behind.
        validity: min(now, earliestStart) - 86_400...start + days * 86_400),
      key: key)
    return try TLSIdentity(chain: [certificate], key: key)
  }

  /// 2026-01-01: later builds cannot start earlier.
  private static let earliestStart: Int64 = 1_767_225_600
}

/// The names and addresses of a machine.
package struct HostNames: Sendable, Hashable {
  /// DNS names.
  package let names: [String]
  /// Addresses in network order, of 4 or 16 bytes.
  package let addresses: [[UInt8]]

  /// The most names or addresses that go into a certificate.
  package static let limit = 32

  /// Creates a set of names; those that are no DNS names are left out.
  package init(names: [String], addresses: [[UInt8]]) {
    var unique: [String] = []
    for name in names where Self.isDNSName(name) && !unique.contains(name) { unique.append(name) }
    self.names = Array(unique.prefix(Self.limit))
    var seen: [[UInt8]] = []
    for address in addresses where [4, 16].contains(address.count) && !seen.contains(address) { seen.append(address) }
    self.addresses = Array(seen.prefix(Self.limit))
  }

  /// The host name, the same under `.local` (RFC 6762), `localhost`, and the addresses of all interfaces except
  /// link-local ones, loopback first.
  package static var ofMachine: HostNames {
    var buffer = [CChar](repeating: 0, count: 256)
    gethostname(&buffer, buffer.count - 1)
    let host = String(cBuffer: buffer).lowercased()
    let label = host.split(separator: ".").first.map(String.init) ?? ""
    var loopback = [UInt8](repeating: 0, count: 16)
    loopback[15] = 1
    var addresses: [[UInt8]] = [[127, 0, 0, 1], loopback]
    addresses += interfaceAddresses
    return HostNames(names: [host, "\(label).local", "localhost"], addresses: addresses)
  }

  private static var interfaceAddresses: [[UInt8]] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var addresses: [[UInt8]] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let address = UnsafeRawPointer(entry.ifa_addr) else { continue }
      switch CInt(address.load(as: sockaddr.self).sa_family) {
      case AF_INET:
        let value = address.load(as: sockaddr_in.self).sin_addr
        addresses.append(withUnsafeBytes(of: value) { Array($0) })
      case AF_INET6:
        let bytes = withUnsafeBytes(of: address.load(as: sockaddr_in6.self).sin6_addr) { Array($0) }
        // An address in fe80::/10 is useless without its interface.
        if bytes[0] != 0xFE || bytes[1] & 0xC0 != 0x80 { addresses.append(bytes) }
      default: break
      }
    }
    return addresses
  }

  /// Returns `true` for a name by RFC 1123 section 2.1.
  private static func isDNSName(_ name: String) -> Bool {
    guard name.utf8.count <= 253 else { return false }
    return name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy(isLabel)
  }

  private static func isLabel(_ label: Substring) -> Bool {
    guard (1...63).contains(label.utf8.count), label.first != "-", label.last != "-" else { return false }
    return label.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
  }
}
