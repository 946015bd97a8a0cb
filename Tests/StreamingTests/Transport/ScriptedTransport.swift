import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// A way out that does what a test says, and keeps what it was given.
final class ScriptedTransport: PacketTransport {
  /// The results of the next attempts, in order: the number of packets taken, and the reason for no more. After the
  /// last one, all are taken.
  var script: [(packets: Int, end: SendProgress.End)] = []
  /// The result of every attempt once the script is over; nil takes all.
  var otherwise: (packets: Int, end: SendProgress.End)?
  /// Of the packets that are offered, the positions in their frame of those that are refused for good.
  var refused: Set<Int> = []
  /// `true` if no program listens: each attempt reports a refusal of packets that have left before.
  var isRefusing = false
  /// The number of frames given to it that have not left, by its own account.
  var framesInFlight = 0
  var isThere = true
  private(set) var frames: [ObjectIdentifier: Int] = [:]
  /// Every packet that was taken, in order.
  private(set) var packets: [[UInt8]] = []
  private(set) var control: [[UInt8]] = []
  private(set) var attempts = 0
  private(set) var wholeFrames = 0

  func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress {
    attempts += 1
    var progress = SendProgress(next: packets.lowerBound)
    if isRefusing { progress.errorNumber = ECONNREFUSED }
    let step = script.isEmpty ? otherwise : script.removeFirst()
    let end = min(packets.upperBound, packets.lowerBound + (step?.packets ?? packets.count))
    while progress.next < end {
      defer { progress.next += 1 }
      if refused.contains(progress.next) {
        progress.lost += 1
        progress.errorNumber = EMSGSIZE
        continue
      }
      let packet = frame.batch[progress.next]
      self.packets.append(Array(packet.header) + Array(packet.payload))
      progress.packets += 1
      progress.bytes += packet.count
    }
    if let step {
      progress.end = step.end
      switch step.end {
      case .done: break
      case .full: progress.errorNumber = EAGAIN
      case .busy: progress.errorNumber = ENOBUFS
      case .unreachable: progress.errorNumber = ENETUNREACH
      }
    }
    return progress
  }

  func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool { true }
  func send(control bytes: UnsafeRawBufferPointer) { control.append(Array(bytes)) }
  func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int { 0 }
  func willContinue() {}
  func notePart(isFirst: Bool, isLast: Bool) { if isFirst { wholeFrames += 1 } }
  func isReachable() -> Bool { isThere }
  var losesBursts: Bool { true }
  var descriptors: (output: CInt?, input: CInt?) { (nil, nil) }

  /// The packets that were taken of each frame, by their timestamps, in order.
  var packetsPerFrame: [Int] {
    var counts: [(timestamp: ArraySlice<UInt8>, count: Int)] = []
    for packet in packets {
      if counts.last?.timestamp.elementsEqual(packet[4..<8]) == true {
        counts[counts.count - 1].count += 1
      } else {
        counts.append((packet[4..<8], 1))
      }
    }
    return counts.map(\.count)
  }
}

/// Makes frames of one RTP stream without an encoder.
final class FrameMaker {
  private var packetizer: H264Packetizer
  private var time = Instant.zero
  static let packetSize = 200

  init() throws { packetizer = try H264Packetizer(maximumPacketSize: Self.packetSize) }

  init(_ stream: RTPStream) throws {
    packetizer = try H264Packetizer(stream: stream, maximumPacketSize: Self.packetSize)
  }

  /// A frame of `packets` packets of nearly one size, a NAL unit that is cut into fragments.
  func frame(
    packets: Int = 5, isKeyFrame: Bool = false, isPaced: Bool = false, isFirstPart: Bool = true, isLastPart: Bool = true
  ) throws -> OutgoingFrame {
    // 186 bytes fit a fragment beside the headers of RTP and FU-A.
    let size = packets == 1 ? 20 : 186 * packets - 3
    let frame = try self.frame(nalUnits: [[isKeyFrame ? 0x65 : 0x41] + [UInt8](repeating: 7, count: size)], isKeyFrame)
    frame.fill(isKeyFrame: isKeyFrame, isPaced: isPaced, isFirstPart: isFirstPart, isLastPart: isLastPart)
    try #require(frame.count == packets)
    return frame
  }

  /// A frame of these NAL units, not yet filled.
  func frame(nalUnits: [[UInt8]], _ isKeyFrame: Bool = false) throws -> OutgoingFrame {
    let picture = try CodedPicture(capacity: 4 << 20)
    try #require(picture.store(nalUnits, isKeyFrame: isKeyFrame, at: time))
    time = time + .milliseconds(33)
    let frame = OutgoingFrame()
    packetizer.packetize(picture.accessUnit, into: frame.batch)
    frame.picture = picture
    return frame
  }
}

extension CodedPicture {
  /// Takes a copy of a picture of these NAL units, or of a part of one; false where it does not fit.
  func store(
    _ nalUnits: [[UInt8]], isKeyFrame: Bool, at time: Instant, captured: Instant? = nil, isFirst: Bool = true,
    isLast: Bool = true
  ) -> Bool {
    withNALUnits(nalUnits) {
      store(
        AccessUnit(
          nalUnits: $0, isKeyFrame: isKeyFrame, timestamp: time, captured: captured ?? time, isFirstPart: isFirst,
          isLastPart: isLast))
    }
  }
}
