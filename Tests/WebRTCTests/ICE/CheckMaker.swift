import Platform
import TLS
import WebRTC

/// Makes the checks of a peer: what a browser would send.
struct CheckMaker {
  var local: ICECredentials
  var remote: ICECredentials
  var priority: UInt32 = 0x6e00_01ff
  var nominates = true
  var role: STUNMessage.ICERole? = .controlling(tieBreaker: 7)
  var more: [(UInt16, [UInt8])] = []
  var password: String?

  /// - Parameter session: the credentials of the side that is checked.
  init(_ session: ICECredentials, from peer: ICECredentials) { (local, remote) = (peer, session) }

  func bytes(_ transaction: UInt8 = 1) -> [UInt8] {
    var attributes: [(UInt16, [UInt8])] = [
      (0x0006, Array("\(remote.fragment):\(local.fragment)".utf8)), (0x0024, [UInt8](bigEndian: priority)),
    ]
    switch role {
    case .controlling(let tieBreaker): attributes.append((0x802a, [UInt8](bigEndian: tieBreaker)))
    case .controlled(let tieBreaker): attributes.append((0x8029, [UInt8](bigEndian: tieBreaker)))
    case nil: break
    }
    if nominates { attributes.append((0x0025, [])) }
    attributes += more
    var bytes: [UInt8] = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: transaction, count: 12)
    for (type, value) in attributes {
      bytes += [UInt8](bigEndian: type) + [UInt8](bigEndian: UInt16(value.count)) + value
      bytes += [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    }
    let length = [UInt8](bigEndian: UInt16(bytes.count + 24 - 20))
    (bytes[2], bytes[3]) = (length[0], length[1])
    let code = HashFunction.sha1.authenticationCode(of: bytes, key: Array((password ?? remote.password).utf8))
    return bytes + [0, 8, 0, 20] + code
  }

  func message() throws -> STUNMessage { try bytes().withUnsafeBytes { try STUNMessage($0) } }
}
