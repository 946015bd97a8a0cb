import NIOCore
import NIOEmbedded
import Serving
import TLS
import TestSupport
import Testing

/// A connection between OpenSSL's client and the handler. The numbers of a seed decide what either side does, how the
/// bytes are cut on their way, and what happens to them. The keys are new each time, so the lengths of a few messages of
/// the handshake are too.
final class FuzzedConnection {
  /// The fate of the connection.
  enum Fate: CaseIterable, Sendable {
    /// Everything arrives, and both sides close.
    case undisturbed
    /// It ends at some byte: by the client, by a reset, or by the server that closes at once.
    case cut
    /// Bits are flipped, and pieces get lost or come twice.
    case corrupted
  }

  private let fate: Fate
  private var random: SeededGenerator
  private let client: TLSClient
  private let socket: SimulatedSocket
  private let application: FuzzedApplication
  private let channel: EmbeddedChannel
  /// `true` if the kernel takes bytes only as it gets room for them.
  private let isSlow: Bool
  private var clientWritten = 0
  private var isCut = false
  /// `true` once the client has closed its socket.
  private var isEnded = false
  /// `true` if the server has closed while the client may still send: the handler discards that.
  private var mayDiscard = false
  private var faults: [String] = []

  init(_ server: ServerContext, _ fate: Fate, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let isNewest = Bool.random(using: &random)
    let client = try #require(TLSClient(isNewest: isNewest))
    let isSlow = Int.random(in: 0...2, using: &random) > 0
    let mark = isSlow ? Int.random(in: 100...40_000, using: &random) : 1 << 16
    let socket = SimulatedSocket(mark: mark, room: isSlow ? 0 : .max)
    let handler = try TLSHandler(server)
    let application = FuzzedApplication(handler, socket, seed: random.next())
    let channel = EmbeddedChannel(handlers: [socket, handler, application])
    channel.allowRemoteHalfClosure = Bool.random(using: &random)
    (self.fate, self.client, self.socket, self.application) = (fate, client, socket, application)
    (self.channel, self.isSlow, self.random) = (channel, isSlow, random)
    channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
  }

  /// Runs it to its end, and returns what is wrong.
  func run() -> [String] {
    if number(0...2) > 0 {
      settle()
      if application.written == 0 { application.overhead = socket.takenBytes }
    }
    for _ in 0..<number(10...60) where !socket.isClosed { step() }
    end()
    judge()
    if !socket.isClosed { socket.reset() }
    channel.embeddedEventLoop.advanceTime(by: .hours(1))
    _ = try? channel.finish(acceptAlreadyClosed: true)
    return faults
  }

  private func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }

  /// A number of bytes: few, a record, or several.
  private func amount() -> Int {
    switch number(0...9) {
    case 0...4: number(0...40)
    case 5...8: number(41...3000)
    default: number(3001...40_000)
    }
  }

  // MARK: What happens

  private func step() {
    switch number(0...17) {
    case 0...3: carryToServer(amount())
    case 4, 5: carryToClient(amount())
    case 6, 7: socket.grant(amount())
    case 8...10: application.write(amount(), isAwaited: number(0...1) == 0)
    case 11: application.flush()
    case 12...14: writeByClient(amount())
    case 15: if !client.hasClosed { client.updateKeys(requestsAnswer: number(0...1) == 0) }
    case 16:
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(Int64(number(0...50))))
      if number(0...5) == 0 { close() }
    default:
      switch fate {
      case .undisturbed: break
      case .cut: if number(0...3) == 0 { cut() }
      case .corrupted:
        writeByClient(amount())
        if socket.taken.isEmpty || number(0...1) == 0 { corrupt(&client.outgoing) } else { corrupt(&socket.taken) }
      }
    }
  }

  private func writeByClient(_ count: Int) {
    let next = FuzzedText.client[clientWritten...].prefix(count)
    if client.write(Array(next)) { clientWritten += next.count }
  }

  /// Ends the output of either side, or closes the server's.
  private func close() {
    switch number(0...3) {
    case 0, 1: if client.isComplete { client.close() }
    case 2: application.close(.output)
    // Before there are keys, this ends the connection at once.
    case _ where fate == .undisturbed && client.isComplete && clientWritten > 0 && !application.received.isEmpty:
      mayDiscard = true
      application.close(.all)
    default: break
    }
  }

  private func cut() {
    guard !isCut else { return }
    carryToServer(number(0...client.outgoing.count))
    isCut = true
    switch number(0...2) {
    case 0: endByClient()
    case 1: socket.reset()
    default: channel.triggerUserOutboundEvent(TLSHandler.CloseAtOnce(), promise: nil)
    }
  }

  private func endByClient() {
    isEnded = true
    socket.endInput()
  }

  private func corrupt(_ bytes: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    let start = number(0...bytes.count - 1)
    let piece = Array(bytes[start...].prefix(number(1...40)))
    switch number(0...2) {
    case 0: bytes[start] ^= 1 << UInt8(number(0...7))
    case 1: bytes.removeSubrange(start..<start + piece.count)
    default: bytes.insert(contentsOf: piece, at: start)
    }
  }

  // MARK: The way

  /// Carries the first bytes of the client to the server, cut anywhere. A read of NIO has no more.
  private func carryToServer(_ limit: Int) {
    var rest = client.outgoing.prefix(min(limit, 16_000))
    client.outgoing.removeFirst(rest.count)
    guard !isCut else { return }
    let isByByte = rest.count <= 300 && number(0...3) == 0
    var pieces: [(bytes: ArraySlice<UInt8>, isLast: Bool)] = []
    while !rest.isEmpty {
      let piece = rest.prefix(isByByte ? 1 : number(1...rest.count))
      rest = rest.dropFirst(piece.count)
      pieces.append((piece, rest.isEmpty || number(0...1) == 0))
    }
    socket.receive(pieces)
  }

  private func carryToClient(_ limit: Int) {
    let part = Array(socket.taken.prefix(limit))
    socket.taken.removeFirst(part.count)
    client.receive(part)
  }

  /// Carries everything, as long as there is something; then the kernel's buffer is full again.
  private func settle() {
    var rounds = 0
    while !client.outgoing.isEmpty || !socket.taken.isEmpty || socket.isWaiting {
      rounds += 1
      guard rounds < 10_000 else {
        faults.append("it does not settle")
        return
      }
      socket.grant(number(1...100_000))
      carryToServer(.max)
      carryToClient(.max)
    }
    if isSlow { socket.fill() }
  }

  // MARK: The end

  private func end() {
    settle()
    guard fate == .undisturbed else { return endDisturbed() }
    if number(0...1) == 0 {
      client.close()
      while !client.outgoing.isEmpty { carryToServer(.max) }
      // A client that has closed its socket still gets the rest, where the server allows that.
      if channel.allowRemoteHalfClosure, number(0...1) == 0 { endByClient() }
      closeByServer()
    } else {
      closeByServer()
      settle()
      client.close()
    }
    settle()
    if !socket.isClosed { faults.append("the channel is open after both sides have closed") }
  }

  /// Writes some more, and closes behind it.
  private func closeByServer() {
    for _ in 0..<number(0...4) { application.write(amount(), isAwaited: number(0...1) == 0) }
    let modes: [[CloseMode]] = [[.output], [.all], [.output, .output], [.output, .all]]
    for mode in modes[number(0...3)] { application.close(mode) }
  }

  private func endDisturbed() {
    if !isCut, number(0...3) > 0 { endByClient() }
    settle()
    // A handshake that stands still.
    channel.embeddedEventLoop.advanceTime(by: TLSHandler.handshakeTime + .seconds(1))
    application.close(.all)
    settle()
    channel.embeddedEventLoop.advanceTime(by: TLSHandler.closeTime + .seconds(1))
  }

  private func judge() {
    func expect(_ isRight: Bool, _ fault: @autoclosure () -> String) {
      if !isRight { faults.append(fault()) }
    }
    faults += application.faults
    expect(socket.isClosed && application.ends == 1, "the channel has ended \(application.ends) times")
    expect(application.openPromises == 0, "\(application.openPromises) promises are neither kept nor broken")
    let (received, answered) = (application.received, client.received)
    expect(FuzzedText.begins(FuzzedText.client, with: received), "the server has got what nobody sent")
    expect(FuzzedText.begins(FuzzedText.server, with: answered), "the client has got what nobody sent")
    expect(received.count <= clientWritten && answered.count <= application.written, "more has arrived than was sent")
    // One batch of small writes, one large write, what TLS adds, and its own answers.
    let limit = socket.mark + 3 << 16
    expect(socket.mostWaiting <= limit, "\(socket.mostWaiting) bytes wait, of \(limit)")
    let errors = application.errors
    expect(errors.count { $0 is TLSConnectionError } <= 1, "\(errors)")
    guard fate == .undisturbed else {
      // An end that nobody is told of has lost nothing.
      let isWhole = client.hasClosed && received.count == clientWritten
      expect(!isEnded || !errors.isEmpty || isWhole, "\(received.count) of \(clientWritten) bytes, and no error")
      return
    }
    expect(errors.isEmpty, "\(errors)")
    expect(mayDiscard || received.count == clientWritten, "the server got \(received.count) of \(clientWritten) bytes")
    expect(
      answered.count == application.written, "the client got \(answered.count) of \(application.written) bytes")
    expect(client.isClosedByServer, "the client got no close_notify")
    expect(application.brokenPromises == 0, "\(application.brokenPromises) promises are broken")
  }
}
