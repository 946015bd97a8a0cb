import Glibc
import Platform
import RTP
import SRTP
import Streaming
import TestSupport
import Testing

/// The figures of viewers that get several tracks.
@Suite struct ViewerSumTests {
  private static func track(_ id: UInt64, client: UInt64? = nil, track: Int = 0) -> DestinationStatistics {
    var figures = DestinationStatistics(
      id: ViewerID(number: id), name: "viewer \(id)", track: track, client: client.map(ViewerID.init), isGuest: true)
    figures.media = track == 0 ? .picture : .sound
    return figures
  }

  @Test func `the tracks of a viewer are summed up, and others stay apart`() throws {
    var pictures = Self.track(1)
    (pictures.packets, pictures.bytes, pictures.lost, pictures.framesDropped) = (10, 1000, 1, 2)
    pictures.feedback.pictureLosses = 3
    pictures.refused.forged = 1
    var sound = Self.track(3, client: 1, track: 1)
    (sound.packets, sound.bytes, sound.lost, sound.framesDropped) = (5, 100, 4, 8)
    (sound.isSlow, sound.errorNumber, sound.lastHeard) = (true, ECONNREFUSED, Instant(seconds: 7))
    sound.feedback.packetsRetransmitted = 6
    sound.refused.forged = 2
    let other = Self.track(2)
    // The first track gives the name, whichever comes first.
    for order in [[pictures, other, sound], [sound, other, pictures]] {
      let viewers = DestinationStatistics.viewers(of: order)
      #expect(viewers.map(\.id.number) == [1, 2])
      let sum = try #require(viewers.first)
      #expect(
        sum.name == "viewer 1" && sum.media == [.picture, .sound] && sum.media.description == "picture and sound")
      #expect((sum.packets, sum.bytes, sum.lost, sum.framesDropped) == (15, 1100, 5, 10))
      #expect(sum.isSlow && sum.errorNumber == ECONNREFUSED && sum.unreached == .sound)
      #expect(sum.lastHeard == Instant(seconds: 7))
      #expect(sum.feedback.pictureLosses == 3 && sum.feedback.packetsRetransmitted == 6 && sum.refused.forged == 3)
      #expect(viewers[1].media == .picture && viewers[1].packets == 0)
    }
  }

  @Test func `a viewer that keeps its second track only stays the same viewer`() {
    let viewers = DestinationStatistics.viewers(of: [Self.track(3, client: 1, track: 1)])
    #expect(viewers.map(\.id.number) == [1] && viewers.map(\.media) == [.sound])
  }
}
