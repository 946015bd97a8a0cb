import Media
import RTP
import Synchronization

/// One RTP packet stream and the destinations that get it: an access unit is packetized once for all that share
/// payload and packet size.
final class RTPOutput {
  /// A destination's socket, and where its figures are.
  final class Receiver {
    let index: Int
    var socket: DatagramSocket

    init(index: Int, socket: consuming DatagramSocket) {
      self.index = index
      self.socket = socket
    }
  }

  // One of the two is there. Two optionals and not an enum with payloads, because these are mutated in place, where
  // an enum's payload would be copied out and back for each access unit.
  private var h264: H264Packetizer?
  private var transportStream: TransportStreamPacketizer?
  private let batch = PacketBatch()
  private var messages = MessageVector()
  private let receivers: [Receiver]
  /// The last picture's time on the stream's timeline, and when it was sent, for the clock of ``keepAlive(_:)``.
  private var lastPicture: (timestamp: MediaTime, sent: MediaTime)?

  private init(h264: H264Packetizer?, transportStream: TransportStreamPacketizer?, receivers: [Receiver]) {
    self.h264 = h264
    self.transportStream = transportStream
    self.receivers = receivers
  }

  /// The outputs for `destinations`: one for each pair of payload and packet size.
  ///
  /// - Throws: ``StreamDestinationError`` for a host without address, or where the system gives no socket.
  static func outputs(
    for destinations: [(destination: StreamDestination, address: SocketAddress)]
  ) throws -> [RTPOutput] {
    struct Kind: Hashable {
      let payload: StreamPayload
      let size: Int
    }
    var kinds: [Kind] = []
    var receivers: [Kind: [Receiver]] = [:]
    for (index, entry) in destinations.enumerated() {
      let kind = Kind(payload: entry.destination.payload, size: entry.destination.maximumPacketSize)
      if receivers[kind] == nil { kinds.append(kind) }
      let socket = try DatagramSocket(to: entry.destination, at: entry.address)
      receivers[kind, default: []].append(Receiver(index: index, socket: socket))
    }
    return try kinds.map { kind in
      RTPOutput(
        h264: kind.payload == .h264 ? try H264Packetizer(maximumPacketSize: kind.size) : nil,
        transportStream: kind.payload == .mp2t ? try TransportStreamPacketizer(maximumPacketSize: kind.size) : nil,
        receivers: receivers[kind] ?? [])
    }
  }

  /// What became of an access unit, over all destinations.
  struct Outcome {
    /// Packets that the kernel took.
    var packets = 0
    /// Whether some were lost because the way out took them too slowly.
    var isCongested = false
  }

  /// Packetizes `unit` and sends it to every destination, waiting no longer than `budget` for each.
  func send(_ unit: borrowing AccessUnit, within budget: MediaTime, _ statistics: StatisticsRecorder) -> Outcome {
    batch.removeAll()
    h264?.packetize(unit, into: batch)
    transportStream?.packetize(unit, into: batch)
    let outcome = sendBatch(within: budget, statistics)
    lastPicture = (unit.timestamp, .now())
    return outcome
  }

  /// Repeats the transport stream's clock where no picture did. The clock goes on from the last picture by the time
  /// since that was sent, so that it never runs ahead of a picture that is still on its way.
  func keepAlive(_ statistics: StatisticsRecorder) {
    guard transportStream != nil, let lastPicture else { return }
    batch.removeAll()
    transportStream?.keepAlive(at: lastPicture.timestamp + (.now() - lastPicture.sent), into: batch)
    _ = sendBatch(within: DatagramSocket.patience, statistics)
  }

  private func sendBatch(within budget: MediaTime, _ statistics: StatisticsRecorder) -> Outcome {
    var outcome = Outcome()
    guard batch.count > 0 else { return outcome }
    messages.fill(from: batch)
    for receiver in receivers {
      let result = receiver.socket.send(messages.filled, within: budget)
      outcome.packets += result.packets
      if result.isCongested { outcome.isCongested = true }
      statistics.send.withLock {
        $0.destinations[receiver.index].packets += result.packets
        $0.destinations[receiver.index].bytes += result.bytes
        $0.destinations[receiver.index].lost += result.lost
        $0.destinations[receiver.index].errorNumber = result.errorNumber
      }
    }
    return outcome
  }
}
