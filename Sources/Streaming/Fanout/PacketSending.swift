/// The way in which packets are made and leave. The default is the fast one; the others show what it brings.
package struct PacketSending: Hashable, Sendable {
  /// The limit of packets in one message that the kernel splits (`UDP_SEGMENT`).
  package var segmentsLimit = OutgoingFrame.segments
  /// The limit of messages that go to the kernel in one call (`sendmmsg`).
  package var messagesAtATime = OutgoingFrame.messagesLimit
  /// `true` copies the payloads. `false` lets packets point into the coded picture.
  package var copiesPayloads = false
  /// `true` lets destinations of one kind share packets. `false` makes packets for each destination. Viewers by RTSP
  /// share theirs in any case.
  package var sharesPackets = true

  /// Creates the fast way.
  package init() {}
}
