import TLS

/// One connection of DTLS: the input steers which datagrams get lost, and which arrive twice, late, cut, joined, divided or changed,
/// or are made up. Both ends agree on keys, or on none, and what nobody meddled with ends in keys.
final class DatagramConversation {
  private static let server: ServerContext = {
    guard let key = try? PrivateKey(),
      let certificate = try? Certificate.server(
        .init(commonName: "fuzz", names: [], addresses: [], validity: 0...4_000_000_000), key: key),
      let context = try? ServerContext(
        datagramsWith: [certificate], key: key, profiles: [.aeadAES128GCM, .aes128CounterHMAC80],
        asksForCertificate: true)
    else { fatalError("no context") }
    return context
  }()

  private final class Wire {
    var datagrams: [[UInt8]] = []
  }

  private var script: UnsafeRawBufferPointer.SubSequence
  private let client: DTLSClient
  private let connection: TLSConnection
  private let answers: Wire
  private var toServer: [[UInt8]] = []
  private var isMeddledWith = false
  /// The most that one datagram of the client may lead to: a flight with the certificate.
  private static let answerLimit = 1 << 13

  /// - Parameter isFragmented: `true` sends messages of the handshake in small fragments.
  init?(_ script: UnsafeRawBufferPointer.SubSequence, isFragmented: Bool) {
    let answers = Wire()
    guard let client = isFragmented ? DTLSClient(datagramBytes: 256) : DTLSClient(),
      let connection = try? TLSConnection(Self.server, send: { answers.datagrams.append(Array($0)) })
    else { return nil }
    (self.script, self.client, self.connection, self.answers) = (script, client, connection, answers)
  }

  func run() {
    takeDatagrams()
    while let action = script.popFirst() {
      let amount = Int(action & 31)
      switch action >> 5 {
      case 0: for _ in 0...amount % 4 { deliverFirst() }
      case 1: takeAnswers()
      case 2:
        guard !answers.datagrams.isEmpty else { break }
        answers.datagrams.remove(at: amount % answers.datagrams.count)
        isMeddledWith = true
      case 3:
        isMeddledWith = true
        deliver(Array(script.prefix(amount)))
        script = script.dropFirst(amount)
      case 4: meddle(amount)
      case 5:
        // Joined records are what one datagram may have.
        guard toServer.count > 1 else { break }
        toServer.replaceSubrange(0..<2, with: [toServer[0] + toServer[1]])
      case 6:
        // The library goes by the host's clock: mostly nothing is due.
        try? connection.retransmit()
        client.retransmit()
        takeDatagrams()
      default:
        client.close()
        isMeddledWith = true
        takeDatagrams()
      }
    }
    for _ in 0..<8 {
      while !toServer.isEmpty { deliverFirst() }
      takeAnswers()
    }
    check()
  }

  private func check() {
    if connection.state == .established, client.isComplete, let profile = connection.protectionProfile {
      precondition(connection.keyingMaterial == client.keyingMaterial(bytes: profile.keyingMaterialBytes))
      precondition(connection.peerFingerprint == DTLSClient.fingerprint)
    }
    precondition(isMeddledWith || connection.state == .established && client.isComplete, "nobody meddled")
  }

  private func meddle(_ amount: Int) {
    guard let first = toServer.first, !first.isEmpty else { return }
    isMeddledWith = true
    let end = Int(script.popFirst() ?? 0) % first.count
    switch amount % 6 {
    case 0: toServer.append(first)
    case 1:
      toServer.removeFirst()
      toServer.append(first)
    case 2: toServer[0].removeLast(end)
    case 3: toServer.replaceSubrange(0..<1, with: [Array(first[..<end]), Array(first[end...])])
    case 4: toServer.removeFirst()
    default: toServer[0][end] ^= 1 << UInt8(amount & 7)
    }
  }

  private func deliverFirst() {
    if !toServer.isEmpty { deliver(toServer.removeFirst()) }
  }

  private func deliver(_ datagram: [UInt8]) {
    let before = answers.datagrams.count
    do {
      try datagram.withUnsafeBytes { bytes in
        try connection.receive(bytes) { _ in fatalError("something was opened that nobody said") }
      }
    } catch {
      precondition(isMeddledWith, "\(error)")
    }
    let made = answers.datagrams[before...]
    precondition(made.allSatisfy { $0.count <= TLSConnection.datagramBytes }, "too long a datagram")
    precondition(made.reduce(0) { $0 + $1.count } <= Self.answerLimit, "too long an answer")
  }

  private func takeAnswers() {
    let datagrams = answers.datagrams
    answers.datagrams.removeAll()
    for datagram in datagrams { client.receive(datagram) }
    takeDatagrams()
  }

  private func takeDatagrams() {
    toServer += client.datagrams
    client.datagrams.removeAll()
  }
}
