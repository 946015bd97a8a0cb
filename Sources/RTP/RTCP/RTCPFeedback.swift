/// One entry of a generic NACK, RFC 4585 section 6.2.1: a packet and a bit for each of the 16 that follow it.
public struct NACKEntry: RTCPRecord, Hashable, Sequence {
  /// The size on the wire in bytes.
  public static let byteCount = 4
  /// The maximum number of packets that one entry requests.
  public static let maximumCount = 17

  /// The PID: the sequence number of the first missing packet.
  public var packetID: UInt16
  /// The BLP: bit `n`, counted from the lowest, requests packet `packetID + n + 1`.
  public var followers: UInt16

  /// Creates an entry; see the properties.
  public init(packetID: UInt16, followers: UInt16 = 0) {
    self.packetID = packetID
    self.followers = followers
  }

  /// Reads an entry.
  public init(record bytes: UnsafeRawBufferPointer) {
    packetID = bytes.bigEndian(at: 0)
    followers = bytes.bigEndian(at: 2)
  }

  /// Writes the entry.
  public func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBigEndian(packetID, at: 0)
    memory.storeBigEndian(followers, at: 2)
  }

  /// Returns the requested sequence numbers, in order.
  public func makeIterator() -> Iterator { Iterator(sequenceNumber: packetID, followers: followers, isFirst: true) }

  /// An iterator over the requested sequence numbers.
  public struct Iterator: IteratorProtocol {
    var sequenceNumber: UInt16
    var followers: UInt16
    var isFirst: Bool

    /// Returns the next sequence number.
    public mutating func next() -> UInt16? {
      if isFirst {
        isFirst = false
        return sequenceNumber
      }
      guard followers != 0 else { return nil }
      let step = UInt16(truncatingIfNeeded: followers.trailingZeroBitCount) + 1
      followers >>= step
      sequenceNumber &+= step
      return sequenceNumber
    }
  }
}

/// One entry of a Full Intra Request, RFC 5104 section 4.3.1.
public struct FullIntraRequestEntry: RTCPRecord, Hashable {
  /// The size on the wire in bytes.
  public static let byteCount = 8

  /// The source that is to send a key frame.
  public var ssrc: UInt32
  /// The sequence number: one more than in the request before, unchanged in a repeated request.
  public var sequenceNumber: UInt8

  /// Creates an entry; see the properties.
  public init(ssrc: UInt32, sequenceNumber: UInt8) {
    self.ssrc = ssrc
    self.sequenceNumber = sequenceNumber
  }

  /// Reads an entry.
  public init(record bytes: UnsafeRawBufferPointer) {
    ssrc = bytes.bigEndian(at: 0)
    sequenceNumber = bytes[4]
  }

  /// Writes the entry.
  public func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBigEndian(ssrc, at: 0)
    memory.storeBigEndian(UInt32(sequenceNumber) << 24, at: 4)
  }
}

/// The items of a source description, RFC 3550 section 6.5, read in place.
public struct SourceDescriptionItems: Sequence {
  /// One item.
  public struct Item {
    /// The source that the item describes.
    public let ssrc: UInt32
    /// The item type: 1 CNAME, 2 NAME, 3 EMAIL, 4 PHONE, 5 LOC, 6 TOOL, 7 NOTE, 8 PRIV.
    public let type: UInt8
    /// The text, at most 255 bytes, UTF-8 if the sender conforms; valid as long as the packet's bytes are.
    public let text: UnsafeRawBufferPointer
  }

  private let body: UnsafeRawBufferPointer
  private let chunks: Int

  /// Creates a list of the items of the `chunks` chunks in `body`.
  ///
  /// - Throws: ``RTCPError/sourceDescription(offset:)`` for an item or chunk that does not end.
  init(_ body: UnsafeRawBufferPointer, chunks: Int) throws(RTCPError) {
    self.body = body
    self.chunks = chunks
    var walk = makeIterator()
    while walk.next() != nil {}
    if walk.isBroken { throw .sourceDescription(offset: walk.offset) }
  }

  /// Returns an iterator at the first item.
  public func makeIterator() -> Iterator { Iterator(body: body, chunksLeft: chunks) }

  /// An iterator over the items.
  public struct Iterator: IteratorProtocol {
    let body: UnsafeRawBufferPointer
    var chunksLeft: Int
    var offset = 0
    var ssrc: UInt32?
    var isBroken = false

    init(body: UnsafeRawBufferPointer, chunksLeft: Int) {
      self.body = body
      self.chunksLeft = chunksLeft
    }

    /// Returns the next item.
    public mutating func next() -> Item? {
      while !isBroken {
        guard let source = ssrc else {
          guard chunksLeft > 0 else { return nil }
          guard let source = body.bigEndian(UInt32.self, at: offset) else { return fail() }
          chunksLeft -= 1
          ssrc = source
          offset += 4
          continue
        }
        guard offset < body.count else { return fail() }
        let type = body[offset]
        if type == 0 {
          // One to four zeros end the list, so that the next chunk is aligned.
          offset = (offset / 4 + 1) * 4
          ssrc = nil
          guard offset <= body.count else { return fail() }
          continue
        }
        guard offset + 2 <= body.count, offset + 2 + Int(body[offset + 1]) <= body.count else { return fail() }
        let start = offset + 2
        offset = start + Int(body[offset + 1])
        return Item(ssrc: source, type: type, text: UnsafeRawBufferPointer(rebasing: body[start..<offset]))
      }
      return nil
    }

    private mutating func fail() -> Item? {
      isBroken = true
      return nil
    }
  }
}
