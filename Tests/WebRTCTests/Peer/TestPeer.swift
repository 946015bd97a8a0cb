import Platform
import TLS
import Testing
import WebRTC

/// A session, and the browser at its other end: its checks, and its end of DTLS.
final class TestPeer {
  let session: PeerSession
  let client: DTLSClient
  let own = ICECredentials()

  static let context: ServerContext = {
    let contents = Certificate.Contents(commonName: "nightjar", names: [], addresses: [], validity: 0...4_000_000_000)
    guard let key = try? PrivateKey(), let certificate = try? Certificate.server(contents, key: key),
      let context = try? ServerContext(
        datagramsWith: [certificate], key: key, profiles: [.aeadAES128GCM, .aes128CounterHMAC80],
        asksForCertificate: true)
    else { fatalError("no context") }
    return context
  }()

  /// - Parameter fingerprint: that of the offer.
  init(fingerprint: [UInt8] = DTLSClient.fingerprint, at time: Instant) throws {
    session = try PeerSession(remote: own, fingerprints: [fingerprint], context: Self.context, at: time)
    client = try #require(DTLSClient())
  }

  /// A check of the session, nominating.
  var check: CheckMaker { CheckMaker(session.agent.local, from: own) }

  /// Exchanges datagrams of DTLS until nothing is left to say.
  ///
  /// - Parameter send: hands a datagram to the server's side; its answers.
  func shakeHands(_ send: ([UInt8]) -> [PeerSession.Output]) -> [PeerSession.Output] {
    var outputs: [PeerSession.Output] = []
    while !client.datagrams.isEmpty {
      for output in send(client.datagrams.removeFirst()) {
        if case .send(let bytes, _) = output { client.receive(bytes) } else { outputs.append(output) }
      }
    }
    return outputs
  }
}
