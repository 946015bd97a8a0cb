import Media

/// What became of packets that were to be sent.
struct SendProgress {
  /// Why it ended.
  enum End {
    /// All were sent, or lost one by one.
    case done
    /// There is no room; the transport's output will be ready again.
    case full
    /// The interface's queue has no room, for which there is no event: try again soon.
    case busy
    /// No route, no permission, interface gone: whatever follows would fail alike.
    case unreachable
  }

  /// The first packet that is still to be sent.
  var next: Int
  /// Packets that the kernel took.
  var packets = 0
  /// Their bytes, RTP headers included.
  var bytes = 0
  /// Packets that it refused for good.
  var lost = 0
  /// The `errno` of the last refusal; 0 where there was none.
  var errorNumber: CInt = 0
  /// Why it ended.
  var end = End.done
}

/// One viewer's way out. Used by the send thread alone, and never waits.
protocol PacketTransport: AnyObject {
  /// Sends packets of `frame`; both ends of `packets` are where the kernel's messages begin or end.
  func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress

  /// Sends one packet, which is lost where there is no room; false then.
  func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool

  /// Sends one RTCP datagram, which is lost where there is no room.
  func send(control: UnsafeRawBufferPointer)

  /// Whether packets that leave all at once may be lost on the way, for want of room in a queue.
  var losesBursts: Bool { get }

  /// Takes one datagram that the viewer has sent into `memory`: its length, or 0 where there is none that is RTCP and
  /// `hasMore` says whether to ask again.
  func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int

  /// Frames that were given to the transport and have not left the machine.
  var framesInFlight: Int { get }

  /// Says that another part of the last frame is about to be given to it.
  func willContinue()

  /// Says that a frame, or a part of one, has been given to it as a whole.
  func notePart(isFirst: Bool, isLast: Bool)

  /// Whether it leads anywhere at all; asked before a frame where the last one met ``SendProgress/End/unreachable``.
  func isReachable() -> Bool

  /// What to watch for room, and for RTCP.
  var descriptors: (output: CInt?, input: CInt?) { get }
}
