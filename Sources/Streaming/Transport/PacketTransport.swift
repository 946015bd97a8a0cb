package import RTP

/// The result of sending packets.
package struct SendProgress {
  /// The reason why sending ended.
  package enum End {
    /// All were sent, or lost one by one.
    case done
    /// There is no room; the transport's output will be ready again.
    case full
    /// The interface's queue has no room, for which there is no event: try again soon.
    case busy
    /// No route, no permission, interface gone: all further packets would fail alike.
    case unreachable
  }

  /// The first packet that is still to be sent.
  package var next: Int
  /// Packets that the kernel took.
  package var packets = 0
  /// Their bytes, RTP headers included.
  package var bytes = 0
  /// Packets that the kernel refused for good.
  package var lost = 0
  /// The `errno` of the last refusal; 0 where there was none.
  package var errorNumber: CInt = 0
  /// The reason why sending ended.
  package var end = End.done

  /// Creates the progress of one call.
  package init(
    next: Int, packets: Int = 0, bytes: Int = 0, lost: Int = 0, errorNumber: CInt = 0, end: SendProgress.End = End.done
  ) {
    self.next = next
    self.packets = packets
    self.bytes = bytes
    self.lost = lost
    self.errorNumber = errorNumber
    self.end = end
  }
}

/// The transport of packets to one viewer. Used by the send thread alone, and never waits.
package protocol PacketTransport: AnyObject {
  /// Sends packets of `frame`. Where both ends of `packets` are boundaries of the kernel's messages, several packets may
  /// leave in one.
  func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress

  /// Sends one packet. Returns `false` if there is no room; then the packet is lost.
  func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool

  /// Sends one RTCP datagram, which is lost where there is no room.
  func send(control: UnsafeRawBufferPointer)

  /// `true` if packets that leave all at once may be lost on the way, because a queue has no room.
  var losesBursts: Bool { get }

  /// The amount by which the stream's sequence numbers exceed those of the packets that leave.
  var sequenceOffset: UInt16 { get }

  /// Takes one datagram from the viewer into `memory`. `hasMore` says whether to call again.
  ///
  /// - Returns: The datagram's length, or 0 where there is none that is RTCP.
  func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int

  /// The number of frames that were given to the transport and have not left the host, as far as the viewer or its network is the
  /// cause: those that wait for a thread of this host count only after ``Viewer/patience``.
  var framesInFlight: Int { get }

  /// Notes that another part of the last frame is about to be given to the transport.
  func willContinue()

  /// Notes that a frame, or a part of one, has been given to the transport as a whole.
  func notePart(isFirst: Bool, isLast: Bool)

  /// Returns `true` if there is a route at all. Called before a frame where the last one met
  /// ``SendProgress/End/unreachable``.
  func isReachable() -> Bool

  /// `true` if several receivers may get the packets.
  var isShared: Bool { get }

  /// Returns what the other side has received, where the transport learned it since the last call.
  func takeReception() -> ReceptionSample?

  /// Takes the bits a second that the path takes by the last reception; nil while the path is open.
  func noteLimit(_ bits: Double?)

  /// The descriptors to watch for room, and for RTCP.
  var descriptors: (output: CInt?, input: CInt?) { get }
}

extension PacketTransport {
  // Other transports leave the numbers as they are.
  package var sequenceOffset: UInt16 { 0 }
  package var isShared: Bool { false }
  package func takeReception() -> ReceptionSample? { nil }
  package func noteLimit(_ bits: Double?) {}
}
