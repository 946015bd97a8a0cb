import Glibc
package import Platform
package import RTP
import Synchronization

/// RTP and RTCP within a byte stream, each packet behind `$`, a channel's number and its length (RFC 2326 section
/// 10.12). The owner of the byte stream writes the bytes that this transport makes.
package final class InterleavedTransport: PacketTransport, @unchecked Sendable {
  // Sendable: what the send thread does not use alone is atomic or under a mutex.
  private let media: UInt8
  private let control: UInt8
  private let write: @Sendable (InterleavedBytes) -> Void
  /// The frames that have not left this host, the untaken ones included.
  private let inFlight = Atomic(0)
  /// The frames that the owner of the byte stream has not taken yet.
  private let untaken = Atomic(0)
  /// The time of the first of these; used by the send thread alone.
  private var firstUntaken = Instant.zero
  private let inbox: ControlInbox
  /// The other side's reception, until the send thread takes it.
  private let reception = Mutex<ReceptionSample?>(nil)
  /// The bits a second that the path takes; 0 while it is open.
  private let pathLimit = Atomic(0)
  /// `true` if packets may leave before packets of pictures that wait in the byte stream: sound, whose channels are others.
  package let overtakesPictures: Bool

  /// Creates a transport on the agreed channels.
  ///
  /// - Parameters:
  ///   - media: the channel of RTP.
  ///   - control: the channel of RTCP.
  ///   - overtakesPictures: `true` for sound; see ``overtakesPictures``.
  ///   - write: takes the bytes to be written, on the send thread, and must not wait. Once the owner has a frame in its hands,
  ///     ``frameWasTaken()`` is to be called; once the frame has left this host, or never will, ``frameHasLeft()``.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  package init(
    media: UInt8, control: UInt8, overtakesPictures: Bool = false, write: @escaping @Sendable (InterleavedBytes) -> Void
  ) throws(SystemFailure) {
    self.overtakesPictures = overtakesPictures
    self.media = media
    self.control = control
    self.write = write
    inbox = try ControlInbox(limit: 16)
  }

  /// Notes that the owner of the byte stream has taken one of the frames. Any thread.
  package func frameWasTaken() {
    let former = untaken.subtract(1, ordering: .relaxed).oldValue
    precondition(former > 0, "a frame is taken once")
  }

  /// Notes that one of the frames that were to be written has left this host, or never will. Any thread.
  package func frameHasLeft() {
    inFlight.subtract(1, ordering: .relaxed)
  }

  /// Notes what the other side of the byte stream has received. Any thread.
  package func note(_ sample: ReceptionSample) { reception.withLock { $0 = sample } }

  /// The bits a second that the path takes; nil while it is open. Any thread.
  package var limit: Int? {
    let bits = pathLimit.load(ordering: .relaxed)
    return bits == 0 ? nil : bits
  }

  /// Takes the bits a second that the path takes; nil while it is open. Any thread.
  package func noteLimit(_ bits: Double?) {
    pathLimit.store(bits.map { Int(max(1, min($0, 1e12))) } ?? 0, ordering: .relaxed)
  }

  /// Takes an RTCP datagram that came on the control channel. Any thread.
  package func receive(control datagram: [UInt8]) { inbox.add(datagram) }

  // None of the frame's packets is lost here: there is always room for one frame more.
  package func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress {
    let bytes = frame.interleaved(packets, channel: media)
    var progress = SendProgress(next: packets.upperBound)
    progress.packets = packets.count
    progress.bytes = bytes.count - packets.count * InterleavedBytes.headerBytes
    // A paced frame comes in parts, of which the last one stands for all.
    if bytes.isFrame { noteGiven() }
    write(bytes)
    return progress
  }

  private func noteGiven() {
    if untaken.load(ordering: .relaxed) == 0 { firstUntaken = .now() }
    untaken.add(1, ordering: .relaxed)
    inFlight.add(1, ordering: .relaxed)
  }

  package func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
    write(InterleavedBytes(channel: media, header, payload))
    return true
  }

  package func send(control bytes: UnsafeRawBufferPointer) {
    write(InterleavedBytes(channel: control, bytes, UnsafeRawBufferPointer(start: nil, count: 0)))
  }

  package func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int {
    inbox.take(into: memory, hasMore: &hasMore)
  }

  package func takeReception() -> ReceptionSample? {
    reception.withLock { sample in
      defer { sample = nil }
      return sample
    }
  }

  // A thread of this host that stands still for a moment makes no viewer slow: what waits for that thread does not count yet.
  package var framesInFlight: Int {
    let untaken = untaken.load(ordering: .relaxed)
    let count = inFlight.load(ordering: .relaxed)
    guard untaken > 0, Instant.now() - firstUntaken < Viewer.patience else { return count }
    return max(0, count - untaken)
  }
  package var losesBursts: Bool { false }
  package func willContinue() {}
  package func notePart(isFirst: Bool, isLast: Bool) {}
  package func isReachable() -> Bool { true }
  package var descriptors: (output: CInt?, input: CInt?) { (nil, inbox.fileDescriptor) }
}

/// Interleaved packets, made once for all viewers that agreed on the same channel.
package final class InterleavedBytes: @unchecked Sendable {
  // Sendable: the bytes are written in `init`, and in `refill` by the only holder of the object.
  /// The bytes; valid for as long as this object is held.
  package private(set) var bytes: UnsafeRawBufferPointer
  /// `true` if the bytes end a frame: ``InterleavedTransport/frameHasLeft()`` is to be called once they have left.
  package private(set) var isFrame: Bool
  private var memory: UnsafeMutableRawBufferPointer

  /// The size of `$`, the channel and the length.
  package static let headerBytes = 4

  package var count: Int { bytes.count }

  /// Creates one packet of two parts, which is no frame.
  convenience init(channel: UInt8, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer) {
    self.init(count: Self.headerBytes + header.count + payload.count, isFrame: false) { memory in
      Self.append(header, payload, channel: channel, to: memory)
    }
  }

  init(count: Int, isFrame: Bool, fill: (UnsafeMutableRawPointer) -> Void) {
    memory = .allocate(byteCount: max(1, count), alignment: 8)
    fill(memory.baseAddress.unsafelyUnwrapped)
    bytes = UnsafeRawBufferPointer(start: memory.baseAddress, count: count)
    self.isFrame = isFrame
  }

  deinit {
    memory.deallocate()
  }

  /// Replaces the bytes, in the same memory where they have room. The caller must be the only holder of the object.
  func refill(count: Int, isFrame: Bool, fill: (UnsafeMutableRawPointer) -> Void) {
    if count > memory.count {
      memory.deallocate()
      // More than is needed, so that a picture that is a little larger than all before soon needs no new memory.
      memory = .allocate(byteCount: count + count / 2, alignment: 8)
    }
    fill(memory.baseAddress.unsafelyUnwrapped)
    bytes = UnsafeRawBufferPointer(start: memory.baseAddress, count: count)
    self.isFrame = isFrame
  }

  static func append(
    _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, channel: UInt8,
    to memory: UnsafeMutableRawPointer
  ) {
    let length = UInt16(truncatingIfNeeded: header.count + payload.count)
    memory.storeBytes(of: 0x24, as: UInt8.self)
    memory.storeBytes(of: channel, toByteOffset: 1, as: UInt8.self)
    memory.storeBytes(of: length.bigEndian, toByteOffset: 2, as: UInt16.self)
    if let base = header.baseAddress { (memory + headerBytes).copyMemory(from: base, byteCount: header.count) }
    if let base = payload.baseAddress {
      (memory + headerBytes + header.count).copyMemory(from: base, byteCount: payload.count)
    }
  }
}
