import Adaptors
import Media
import Platform
import RTP
import Receiving
import TestSupport
import Testing

/// The first pictures of a session and of a source, and the parameter sets that come with them.
@Suite struct SessionStartTests {
  private static func sequence(_ width: Int) -> [UInt8] {
    var writer = BitWriter()
    SequenceParameters(
      profile: .high, levelIDC: 40, size: PictureSize(width: width, height: 240), color: .bt709, frameRate: .thirty
    ).write(to: &writer)
    return Array(writer.bytes.dropFirst(4))
  }

  // Numbers 0, 1 and 0 again, with other values.
  private static let pictureSets: [[UInt8]] = [
    [0x68, 0xee, 0x3c, 0x80], [0x68, 0x5b, 0x8f, 0x20], [0x68, 0xee, 0x38, 0x80],
  ]
  private static let (key, later): ([UInt8], [UInt8]) = ([0x65, 0x88, 0x84, 0x21], [0x41, 0x9a, 0x21, 0x6c])
  private static let recovery: [UInt8] = [6, 6, 1, 0xc4, 0x80]

  /// A session whose description has an SPS and two PPS.
  private final class Session {
    private(set) var pictures: [EncodedPicture] = []
    private var reception: TrackReception?
    private var time = Instant.zero
    private var packetizers: [UInt32: H264Packetizer] = [:]

    init() throws {
      let sets = ([sequence(320)] + pictureSets[..<2]).map { Base64.encode($0) }.joined(separator: ",")
      let text = """
        v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=x\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=video 5006 RTP/AVP 96\r
        a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;sprop-parameter-sets=\(sets)\r\n
        """
      reception = try TrackReception(
        try ReceivedDescription(Array(text.utf8)).picture(), .init(isReliable: true), keys: nil, SessionClock(),
        .init(), at: .zero, wallClock: { 0 }
      ) { [unowned self] media in
        if case .picture(let picture) = media { pictures.append(picture) }
      }
    }

    func send(_ units: [[UInt8]], source: UInt32 = 7) throws {
      time = time + .milliseconds(40)
      var packetizer =
        try packetizers[source]
        ?? H264Packetizer(
          stream: RTPStream(payloadType: .h264, ssrc: source, firstSequenceNumber: 9, timestampOffset: 0))
      let batch = PacketBatch()
      let packets = withNALUnits(units) { units in
        packetizer.packetize(
          AccessUnit(nalUnits: units, isKeyFrame: false, timestamp: time, captured: time), into: batch)
        return (0..<batch.count).map { Array(batch[$0].header) + Array(batch[$0].payload) }
      }
      packetizers[source] = packetizer
      for packet in packets { packet.withUnsafeBytes { reception?.receive($0, at: time) } }
    }
  }

  private static func units(of picture: EncodedPicture) -> [[UInt8]] {
    var units: [[UInt8]] = []
    picture.annexB.withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
    return units
  }

  @Test(arguments: [[key], [recovery, later]])
  func `what comes before the first picture at which a decoder can start is marked`(entry: [[UInt8]]) throws {
    let session = try Session()
    for units in [[Self.later], [Self.later], entry, [Self.later]] { try session.send(units) }
    #expect(session.pictures.map(\.isDamaged) == [true, true, false, false])
    #expect(session.pictures.map(\.isEntry) == [false, false, true, false])
    let first = try #require(session.pictures.first?.number)
    #expect(session.pictures.map(\.number) == (0..<4).map { first + $0 })
    // All sets of the description come with it.
    #expect(Self.units(of: session.pictures[2]) == [Self.sequence(320)] + Self.pictureSets[..<2] + entry)
  }

  @Test func `sets of a sequence that the picture does not name stay away`() throws {
    let session = try Session()
    // A PPS of number 7 and of sequence 3.
    try session.send([[0x68, 0b0001_0000, 0b0100_11_00, 0x80], Self.key])
    try session.send([Self.key])
    #expect(Self.units(of: session.pictures[1]) == [Self.sequence(320)] + Self.pictureSets[..<2] + [Self.key])
  }

  @Test func `another source, and another session, have numbers that do not go on`() throws {
    let (first, second) = (try Session(), try Session())
    for source in [7, 8] as [UInt32] {
      for units in [[Self.later], [Self.key], [Self.later]] { try first.send(units, source: source) }
    }
    try second.send([Self.key])
    try second.send([Self.later])
    #expect(first.pictures.map(\.isDamaged) == [true, false, false, true, false, false])
    let numbers = first.pictures.compactMap(\.number)
    #expect(numbers.count == 6 && numbers[3] != numbers[2] + 1 && numbers[5] == numbers[3] + 2)
    #expect(second.pictures.first?.number != numbers[5] + 1)
  }

  @Test func `sets of the stream take the place of those of its description for good`() throws {
    let session = try Session()
    try session.send([Self.key])
    // Another PPS of number 0, and then another SPS, which takes its PPS along.
    try session.send([Self.pictureSets[2], Self.key])
    try session.send([Self.key])
    try session.send([Self.sequence(640), Self.pictureSets[0], Self.key])
    try session.send([Self.key])
    let sets = session.pictures.map { Self.units(of: $0).filter { $0 != Self.key } }
    #expect(sets[0] == [Self.sequence(320)] + Self.pictureSets[..<2])
    #expect(sets[2] == [Self.sequence(320), Self.pictureSets[2], Self.pictureSets[1]])
    #expect(sets[3] == [Self.sequence(640), Self.pictureSets[0]])
    #expect(sets[4] == [Self.sequence(640), Self.pictureSets[0]])
    #expect(session.pictures.allSatisfy { !$0.isDamaged })
  }
}
