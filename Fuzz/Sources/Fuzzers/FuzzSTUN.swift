import Platform
import TLS
import WebRTC

/// Any bytes as a connectivity check. Without the password they get no answer. Their attributes with the password's proof get
/// an answer that is no larger than it must be, is read again and proves itself; with one bit changed they get none.
enum FuzzSTUN {
  // Those of the samples of RFC 5769.
  static let local = credentials("evtj", "VOkJxbRl1RmTxUk/WvJxBt")
  static let remote = credentials("h6vY", "0123456789012345678901")
  static let secret = credentials("evtj", ICECredentials().password)
  static let key = Array(local.password.utf8)
  static let paths = ["192.0.2.1", "2001:db8:1234:5678:11:2233:4455:6677"].compactMap { IPAddress($0) }
    .map { PeerPath(address: $0, port: 32_853) }
  static let time = Instant(nanoseconds: 1_000_000_000)

  static func credentials(_ fragment: String, _ password: String) -> ICECredentials {
    guard let credentials = ICECredentials(fragment: fragment, password: password) else { fatalError("no credentials") }
    return credentials
  }

  static func take(_ input: UnsafeRawBufferPointer) {
    refuse(input)
    guard let check = proved(input) else { return }
    // A datagram that is answered as it came has the proof itself.
    var agent = ICELiteAgent(local: local, remote: remote)
    if let message = read(input), agent.answer(message, from: paths[0], at: time) != nil {
      precondition(input.dropFirst(check.count - 24).starts(with: check.suffix(24)), "an answer to a forged check")
    }
    answer(check)
    bend(check)
  }

  /// Nobody knows this agent's password.
  static func refuse(_ input: UnsafeRawBufferPointer) {
    guard let message = read(input) else { return }
    var agent = ICELiteAgent(local: secret, remote: remote)
    let answer = agent.answer(message, from: paths[0], at: time)
    precondition(answer == nil, "an answer to who does not know the password")
    precondition(agent.paths.isEmpty && agent.selected == nil && agent.lastCheck == nil)
  }

  static func answer(_ check: [UInt8]) {
    guard let message = check.withUnsafeBytes({ read($0) }) else { return }
    precondition(message.hasIntegrity(key: key) && !message.hasIntegrity(key: Array(remote.password.utf8)))
    var agent = ICELiteAgent(local: local, remote: remote)
    let path = paths[Int(check[19] & 1)]
    let result = agent.answer(message, from: path, at: time)
    let isCheck =
      message.method == STUNMessage.binding && message.messageClass == .request && message.username == "evtj:h6vY"
    precondition((result != nil) == isCheck)
    guard let answer = result else { return }
    guard let response = answer.withUnsafeBytes({ read($0) }) else { fatalError("an answer that is not read") }
    precondition(response.hasIntegrity(key: key), "an answer without proof")
    precondition(response.method == message.method && response.transaction == message.transaction)
    precondition(response.unknownAttributes.isEmpty)
    // The header, MESSAGE-INTEGRITY and FINGERPRINT.
    let frame = STUNMessage.headerBytes + 24 + 8
    if !message.unknownAttributes.isEmpty {
      // ERROR-CODE with its words, and two bytes for each attribute.
      let list = (2 * message.unknownAttributes.count + 3) / 4 * 4
      precondition(response.messageClass == .error && answer.count == frame + 28 + 4 + list)
    } else if case .controlled = message.role {
      precondition(response.messageClass == .error && answer.count == frame + 24)
    } else {
      let count = path.address.bytes.count
      precondition(response.messageClass == .success && answer.count == frame + 8 + count)
      // The attribute begins at 20, its port at 26, its address at 28. The mask is the cookie and the transaction.
      let port = UInt16(answer[26] ^ 0x21) << 8 | UInt16(answer[27] ^ 0x12)
      let address: [UInt8] = zip(answer[28..<(28 + count)], answer[4..<20]).map { $0 ^ $1 }
      precondition(port == path.port && address == path.address.bytes, "another address")
      precondition(agent.knows(path) && agent.lastCheck == time && agent.selected == (message.nominates ? path : nil))
      return
    }
    precondition(agent.paths.isEmpty && agent.lastCheck == nil, "a check that is refused, and counts")
  }

  /// One bit of a true check, which its own bytes choose, is another.
  static func bend(_ check: [UInt8]) {
    let bit = check.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xff_ffff } % (check.count * 8)
    var bent = check
    bent[bit / 8] ^= 1 << (bit % 8)
    // The fuzzer learns true proofs from comparisons. An attribute with one, whose type has become MESSAGE-INTEGRITY, proves
    // what stands before it.
    let proof: [UInt8] = [0, 8, 0, 20]
    guard !bent.indices.dropLast(24).contains(where: { bent[$0...].starts(with: proof) }) else { return }
    guard let message = bent.withUnsafeBytes({ read($0) }) else { return }
    var agent = ICELiteAgent(local: local, remote: remote)
    let answer = agent.answer(message, from: paths[0], at: time)
    precondition(answer == nil && agent.paths.isEmpty, "an answer to a check that was changed")
  }

  static func read(_ bytes: UnsafeRawBufferPointer) -> STUNMessage? {
    do throws(STUNError) { return try STUNMessage(bytes) } catch {
      precondition(!error.description.isEmpty)
      return nil
    }
  }

  /// The input's attributes up to its proof or its checksum, with the proof of who knows the password.
  static func proved(_ input: UnsafeRawBufferPointer) -> [UInt8]? {
    guard input.count >= STUNMessage.headerBytes else { return nil }
    var bytes = Array(input.prefix(STUNMessage.headerBytes))
    // So that the fuzzer need not find the cookie.
    bytes[0] &= 0x3f
    bytes.replaceSubrange(4..<8, with: [0x21, 0x12, 0xa4, 0x42])
    var rest = input.dropFirst(STUNMessage.headerBytes)
    while rest.count >= 4 {
      let start = rest.startIndex
      let type = UInt16(rest[start]) << 8 | UInt16(rest[start + 1])
      let length = Int(rest[start + 2]) << 8 | Int(rest[start + 3])
      let count = 4 + (length + 3) / 4 * 4
      guard type != 0x0008, type != 0x8028, rest.count >= count else { break }
      bytes += rest.prefix(count)
      rest = rest.dropFirst(count)
    }
    let length = bytes.count + 24 - STUNMessage.headerBytes
    bytes[2] = UInt8(truncatingIfNeeded: length >> 8)
    bytes[3] = UInt8(truncatingIfNeeded: length)
    let code = HashFunction.sha1.authenticationCode(of: bytes, key: key)
    return bytes + [0, 8, 0, 20] + code
  }
}
