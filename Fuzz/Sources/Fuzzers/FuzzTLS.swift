import TLS

/// A client of OpenSSL's talks to our server, and the input steers what lies between: bytes arrive cut anywhere, bent, or made
/// up. What is opened must be what was sent, and without meddling nothing may fail. The third bit of the first byte chooses DTLS.
enum FuzzTLS {
  static func take(_ input: UnsafeRawBufferPointer) {
    if let first = input.first, first & 4 != 0, input.count <= 2048 {
      DatagramConversation(input.dropFirst(), isFragmented: first & 1 != 0)?.run()
    } else {
      Conversation(input)?.run()
    }
  }
}

/// One connection: the input's first byte chooses the version and whether keys are agreed on first, each further one what
/// happens next.
final class Conversation {
  private static let server: ServerContext = {
    guard let key = try? PrivateKey(),
      let certificate = try? Certificate.server(
        .init(commonName: "fuzz", names: ["fuzz"], addresses: [], validity: 0...4_000_000_000), key: key),
      let context = try? ServerContext(chain: [certificate], key: key, protocols: ["http/1.1"])
    else { fatalError("no context") }
    return context
  }()

  private final class Wire {
    var bytes: [UInt8] = []
  }

  private var script: UnsafeRawBufferPointer.SubSequence
  private let isNew: Bool
  private let client: TLSClient
  private let connection: TLSConnection
  private let answers: Wire
  private var isMeddledWith = false
  private var hasFailed = false
  private var (written, read): ([UInt8], [UInt8]) = ([], [])
  private var (serverWritten, clientRead) = (0, 0)
  /// The most that one call may make of its own accord: a flight with the certificate.
  private static let answerLimit = 1 << 14

  init?(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first, input.count <= 2048, let client = TLSClient(isNewest: first & 1 != 0) else {
      return nil
    }
    let answers = Wire()
    guard let connection = try? TLSConnection(Self.server, send: { answers.bytes += $0 }) else { return nil }
    script = input.dropFirst()
    isNew = first & 2 != 0
    (self.client, self.connection, self.answers) = (client, connection, answers)
  }

  func run() {
    if !isNew { settle() }
    while let action = script.popFirst() {
      let amount = Int(action & 31)
      switch action >> 5 {
      case 0: deliver(amount + 1)
      case 1: deliver(client.outgoing.count)
      case 2: takeAnswers()
      case 3: say(amount * 37)
      case 4: answer(amount * 700)
      case 5:
        guard !client.outgoing.isEmpty else { break }
        client.outgoing[Int(script.popFirst() ?? 0) % client.outgoing.count] ^= 1 << UInt8(amount & 7)
        isMeddledWith = true
      case 6:
        if amount & 1 == 0 { client.close() } else { client.updateKeys(requestsAnswer: amount & 2 == 0) }
      default:
        if amount == 0 {
          connection.closeOutput()
        } else {
          client.outgoing += script.prefix(amount)
          script = script.dropFirst(amount)
          isMeddledWith = true
        }
      }
    }
    settle()
    guard !isMeddledWith else { return }
    precondition(!hasFailed, "a connection that nobody meddled with has failed")
    precondition(connection.state == .established)
    precondition(read == written, "not all of what was said has arrived")
    precondition(clientRead == serverWritten, "not all of what was answered has arrived")
  }

  /// Everything arrives.
  private func settle() {
    for _ in 0..<8 {
      deliver(client.outgoing.count)
      takeAnswers()
    }
  }

  private func deliver(_ count: Int) {
    let part = Array(client.outgoing.prefix(count))
    client.outgoing.removeFirst(part.count)
    let before = answers.bytes.count
    let wasOver = connection.state == .failed || connection.isInputClosed
    do {
      try part.withUnsafeBytes { bytes in try connection.receive(bytes) { read += $0 } }
    } catch {
      precondition(isMeddledWith, "\(error)")
      precondition(!wasOver && connection.state == .failed)
      hasFailed = true
    }
    precondition(written.starts(with: read), "something was opened that nobody said")
    precondition(answers.bytes.count - before <= Self.answerLimit, "too long an answer")
  }

  private func takeAnswers() {
    client.receive(answers.bytes)
    answers.bytes.removeAll()
    precondition(client.received.allSatisfy { $0 == 7 })
    clientRead += client.received.count
    client.received.removeAll()
  }

  private func say(_ count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: written.count &+ $0 &* 31) }
    if client.write(bytes) { written += bytes }
  }

  private func answer(_ count: Int) {
    let bytes = [UInt8](repeating: 7, count: count)
    let mayWrite = connection.state == .established && !connection.isOutputClosed
    do {
      try bytes.withUnsafeBytes { bytes in try connection.write(bytes) }
      precondition(mayWrite)
      serverWritten += count
    } catch {
      precondition(!mayWrite)
    }
  }
}
