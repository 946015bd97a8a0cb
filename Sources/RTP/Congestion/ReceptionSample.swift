package import Platform

/// The reception of one viewer by now, as learned from a receiver report or from the state of a TCP connection.
///
/// The counts are of the packets or bytes since the viewer began.
package struct ReceptionSample: Hashable, Sendable {
  /// The bytes that have arrived, in whatever order, with the headers of IP and of the transport.
  package var delivered: Int
  /// The bytes that had left up to the newest packet that has arrived, lost ones included.
  package var reached: Int
  /// The age of the newest packet that has arrived: the round trip with all queues, and the time after which the viewer
  /// reported. Nil where nothing of the stream is known to have arrived.
  package var age: Duration?
  /// The age of the oldest packet that has not arrived and is newer than all that have; zero where there is none. It
  /// has no part of the viewer's own in it: such a packet was on its way when the viewer reported.
  package var waiting: Duration
  /// The bytes that have left and are not known to have arrived or to be lost.
  package var outstanding: Int
  /// The round-trip time by LSR and DLSR (RFC 3550 section 6.4.1), where it was measured.
  package var roundTrip: Duration?
  /// The packets up to the newest one that has arrived.
  package var expected: Int
  /// The packets among them that were lost at first, whether they were sent again or not.
  package var lost: Int
  /// The jitter of the viewer's report (RFC 3550 section 6.4.1), or ``acknowledgementDelay`` of a TCP connection.
  package var jitter: Duration

  /// The time for which a TCP peer holds an acknowledgement back: 40 ms by Linux (`TCP_DELACK_MIN`). RFC 9293 section 3.8.6.3 allows
  /// less than 0.5 s.
  package static let acknowledgementDelay = Duration.milliseconds(40)

  /// Creates a sample; see the properties.
  package init(
    delivered: Int, reached: Int = 0, age: Duration?, waiting: Duration, outstanding: Int, roundTrip: Duration? = nil,
    expected: Int = 0,
    lost: Int = 0, jitter: Duration = .zero
  ) {
    self.reached = reached
    (self.delivered, self.age, self.waiting, self.outstanding) = (delivered, age, waiting, outstanding)
    (self.roundTrip, self.expected, self.lost, self.jitter) = (roundTrip, expected, lost, jitter)
  }
}
