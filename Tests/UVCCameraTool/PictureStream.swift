import Glibc
import Media
import Platform

/// The camera's pictures at their pace, into the transfers that the host has waiting.
struct PictureStream {
  /// The trouble that was ordered.
  enum Fault: String {
    case none, stalled, frozen
  }

  private let source: PictureSource
  private let log: HandoverLog?
  private let slowness: Int
  private(set) var setting: StreamNegotiation.Setting?
  var fault = Fault.none
  /// `true` if it is dark, so that a camera that is allowed to takes its time.
  var isDark = false
  /// The number of the next JPEGs that are damaged; the kind, or one kind after another.
  var damagesLeft = 0
  var damage: JPEGDamage?
  /// The number of the next pictures that are cut in half.
  var shortsLeft = 0

  private(set) var framesSent = 0
  /// Pictures for which the host had no room in time.
  private(set) var framesLate = 0
  private(set) var framesDamaged = 0
  private(set) var framesShortened = 0
  /// Counts since the camera got its power, whatever became of the pictures.
  private(set) var number = 0
  private var drawn = 0

  private var transfers: [(sequence: UInt32, capacity: Int)] = []
  private var next = Instant.zero
  private var sent = 0
  private var handoverBegin = Instant.zero
  private var isSending = false
  private var isOdd = false
  private var presentationTime: UInt32 = 0
  private static let headerLength = 6

  init(source: PictureSource, log: HandoverLog?, slowness: Int) {
    self.source = source
    self.log = log
    self.slowness = slowness
  }

  /// Begins to stream.
  mutating func start(_ setting: StreamNegotiation.Setting, at now: Instant) {
    self.setting = setting
    source.restart()
    next = now + Duration(nanoseconds: Int64(setting.interval) * 100)
    isSending = false
  }

  /// Ends streaming; what the host has waiting stays.
  mutating func stop() {
    setting = nil
    isSending = false
  }

  /// Ends every fault that was ordered; pictures come from now on, and none for the time between.
  mutating func resume(at now: Instant) {
    if fault == .stalled { next = now }
    fault = .none
    isDark = false
    damagesLeft = 0
    shortsLeft = 0
  }

  /// Takes a transfer to fill.
  mutating func add(_ sequence: UInt32, capacity: Int) {
    transfers.append((sequence, capacity))
  }

  /// Gives a transfer back; false where it was filled already.
  mutating func remove(_ sequence: UInt32) -> Bool {
    guard let index = transfers.firstIndex(where: { $0.sequence == sequence }) else { return false }
    transfers.remove(at: index)
    return true
  }

  /// When ``run(at:over:controls:)`` is to be called next; nil for only when the host has sent something.
  var deadline: Instant? {
    setting == nil || fault == .stalled ? nil : next
  }

  /// Sends what is due as far as the host has room; false where the host has let go.
  mutating func run(at now: Instant, over link: USBIPLink, controls: inout CameraControls) -> Bool {
    guard let setting else { return true }
    let isSlow = isDark && controls.lowersRateInTheDark
    let nominal = Int64(setting.interval) * (isSlow ? 200 : 100)
    let interval = Duration(nanoseconds: nominal + nominal * Int64(slowness) / 1_000_000)
    guard fault != .stalled, now >= next else { return fill(over: link) }
    let isMissed = isSending || transfers.isEmpty
    while now >= next {
      next = next + interval
      if fault != .frozen { number += 1 }
      // Only the newest is there to be sent: a sensor keeps nothing.
      if isMissed || now >= next { framesLate += 1 }
    }
    if !isMissed {
      begin(setting.format, at: now)
      controls.settle(inTheDark: isDark)
    }
    return fill(over: link)
  }

  private mutating func begin(_ format: CameraFormat, at now: Instant) {
    var damage: JPEGDamage?
    if damagesLeft > 0, format.coding == .mjpeg {
      damage = self.damage ?? JPEGDamage.allCases[framesDamaged % JPEGDamage.allCases.count]
      damagesLeft -= 1
      framesDamaged += 1
    }
    drawn = source.draw(number, of: format, damage: damage)
    if shortsLeft > 0 {
      source.shorten()
      shortsLeft -= 1
      framesShortened += 1
    }
    presentationTime = UInt32(truncatingIfNeeded: now.ticks(rate: Int64(USBDescriptors.Number.clockRate)))
    isOdd.toggle()
    sent = 0
    isSending = true
    handoverBegin = .now()
  }

  /// Each transfer is a payload with a header (UVC 1.1 section 2.4.3.3).
  private mutating func fill(over link: USBIPLink) -> Bool {
    guard isSending, !transfers.isEmpty else { return true }
    let picture = source.picture
    var filled: [USBIPLink.FilledTransfer] = []
    while isSending, filled.count < transfers.count {
      let transfer = transfers[filled.count]
      let room = min(transfer.capacity, USBDescriptors.Number.payloadLimit) - Self.headerLength
      let end = min(picture.count, sent + max(room, 0))
      isSending = end < picture.count
      // The picture's parity, its last payload, a presentation time, and the end of the header.
      var header: [UInt8] = [
        UInt8(Self.headerLength), (isOdd ? 0x01 : 0) | (isSending ? 0 : 0x02) | 0x04 | 0x80,
      ]
      header.append(presentationTime, bytes: 4)
      let payload = UnsafeRawBufferPointer(rebasing: picture[sent..<end])
      filled.append(.init(sequence: transfer.sequence, header: header, payload: payload))
      sent = end
    }
    transfers.removeFirst(filled.count)
    let isTaken = link.complete(filled)
    if !isSending {
      framesSent += 1
      log?.add(drawn, begin: handoverBegin, end: .now())
    }
    return isTaken
  }
}
