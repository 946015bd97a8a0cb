import Glibc
import Platform

/// A tone without an end at the pace of the camera's clock, into the isochronous transfers that the host has waiting.
///
/// A packet is the sound of one millisecond. The rig's processor may stall for longer than the host's transfers last,
/// and with it the bus, which no real one does. So packets wait for transfers for a while, and are lost only then.
struct MicrophoneStream {
  private let frequency: Int
  private let interval: Duration
  private(set) var controls = MicrophoneControls()

  private(set) var packetsSent = 0
  /// Packets that waited in vain.
  private(set) var packetsLost = 0

  private var transfers: [USBIPLink.IsochronousTransfer] = []
  /// When the host began to listen; nil while it does not.
  private var begin: Instant?
  /// The number of packets since then that were sent or lost.
  private var position = 0
  /// `true` if the host begins anew: what waits is not for it.
  private var isNew = true
  /// The packets of a second, after which all come again; empty until they are needed.
  private var second: [[UInt8]] = []

  /// The number of packets that leave in one call, because calls are what costs in the rig. The host has transfers for
  /// twelve.
  private static let batch = 4
  /// The most packets that wait.
  private static let memory = 100
  /// A fifth of full scale: −14 dBFS.
  private static let amplitude = 0.2 * 32_768

  /// - Parameters:
  ///   - frequency: Of the tone, in Hz.
  ///   - slowness: Of its clock, in millionths.
  init(frequency: Int, slowness: Int) {
    self.frequency = frequency
    interval = Duration(nanoseconds: 1_000_000_000 / Int64(MicrophoneDescriptors.packetRate) + Int64(slowness))
  }

  /// `true` if the host listens.
  var isListenedTo: Bool { begin != nil }

  /// Begins to record.
  mutating func start(at now: Instant) { (begin, position, isNew) = (now, 0, true) }

  /// Ends recording; what the host has waiting stays.
  mutating func stop() { begin = nil }

  /// Takes a transfer to fill.
  mutating func add(_ transfer: USBIPLink.IsochronousTransfer, at now: Instant) {
    transfers.append(transfer)
    guard let begin, transfers.count == 1 else { return }
    let passed = Self.packets(from: begin, to: now, interval)
    let kept = max(position, isNew ? passed : passed - Self.memory)
    if !isNew { packetsLost += kept - position }
    (position, isNew) = (kept, false)
  }

  /// Gives a transfer back, because the host stops; false where it was filled already.
  mutating func remove(_ sequence: UInt32) -> Bool {
    guard let index = transfers.firstIndex(where: { $0.sequence == sequence }) else { return false }
    transfers.remove(at: index)
    isNew = true
    return true
  }

  /// Returns the answer to a GET request to the feature unit; nil where it stalls.
  func answer(_ request: ClassRequest, selector: Int, channel: Int) -> [UInt8]? {
    controls.answer(request, selector: selector, channel: channel)
  }

  /// Obeys a SET_CUR request to the feature unit; false where it stalls.
  mutating func set(_ bytes: [UInt8], selector: Int, channel: Int) -> Bool {
    second = []
    return controls.set(bytes, selector: selector, channel: channel)
  }

  /// When ``run(at:over:)`` is to be called next; nil for only when the host has sent something.
  var deadline: Instant? {
    guard let begin, let first = transfers.first else { return nil }
    let count = max(first.packets.count, min(transfers.count, Self.batch))
    return begin + Duration(nanoseconds: interval.nanoseconds * Int64(position + count))
  }

  /// Sends what has been recorded as far as the host has room; false where the host has let go.
  mutating func run(at now: Instant, over link: USBIPLink) -> Bool {
    guard let begin, let deadline, now >= deadline else { return true }
    if second.isEmpty { second = tone() }
    let passed = Self.packets(from: begin, to: now, interval)
    var filled: [(USBIPLink.IsochronousTransfer, [ArraySlice<UInt8>])] = []
    for transfer in transfers {
      let end = position + transfer.packets.count
      guard end <= passed else { break }
      let packets = zip(position..<end, transfer.packets).map { number, packet in
        second[number % second.count].prefix(packet.length)
      }
      filled.append((transfer, packets))
      position = end
      packetsSent += packets.count
    }
    transfers.removeFirst(filled.count)
    return link.complete(filled)
  }

  private static func packets(from begin: Instant, to now: Instant, _ interval: Duration) -> Int {
    Int((now - begin).nanoseconds / interval.nanoseconds)
  }

  private func tone() -> [[UInt8]] {
    let gain = controls.isMuted ? 0 : pow(10, Double(controls.volume) / 256 / 20)
    let samples = MicrophoneDescriptors.rate / MicrophoneDescriptors.packetRate
    return (0..<MicrophoneDescriptors.packetRate).map { packet in
      var bytes: [UInt8] = []
      bytes.reserveCapacity(samples * 2)
      for index in 0..<samples {
        let phase = Double((packet * samples + index) * frequency % MicrophoneDescriptors.rate)
        let value = Self.amplitude * gain * sin(2 * .pi * phase / Double(MicrophoneDescriptors.rate))
        bytes.append(Int16(value.rounded()), bytes: 2)
      }
      return bytes
    }
  }
}
