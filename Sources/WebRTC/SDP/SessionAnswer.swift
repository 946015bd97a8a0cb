import Platform
import RTP

/// The answer to an offer, RFC 8829 section 5.3, as text.
package struct SessionAnswer: Sendable {
  /// The media that offer and tracks have in common.
  package let negotiation: Negotiation
  /// This side's credentials.
  package let credentials: ICECredentials
  /// The SHA-256 of this side's certificate.
  package let fingerprint: [UInt8]
  /// This side's candidates, the preferred one first.
  package let candidates: [Candidate]
  /// The sources of the media that are sent, in their order (``Negotiation/sent``).
  package let sources: [Source]
  /// The CNAME of all sources.
  package let canonicalName: String
  /// A number that no other session of this side has.
  package let sessionID: UInt64

  /// The sources of one medium.
  package struct Source: Hashable, Sendable {
    /// The SSRC of the stream.
    package var ssrc: UInt32
    /// The SSRC of its retransmissions; `nil` without.
    package var retransmission: UInt32?

    /// Creates a value.
    package init(ssrc: UInt32, retransmission: UInt32? = nil) {
      (self.ssrc, self.retransmission) = (ssrc, retransmission)
    }
  }

  /// Creates an answer; see the properties.
  package init(
    _ negotiation: Negotiation, credentials: ICECredentials, fingerprint: [UInt8], candidates: [Candidate],
    sources: [Source], canonicalName: String, sessionID: UInt64
  ) {
    self.negotiation = negotiation
    self.credentials = credentials
    self.fingerprint = fingerprint
    self.candidates = candidates
    self.sources = sources
    self.canonicalName = canonicalName
    self.sessionID = sessionID
  }

  /// The text, with CR LF at the end of each line.
  package var text: String {
    let bundle = negotiation.media.compactMap { negotiation.offer.media[$0.index].identifier }
    var lines = ["v=0", "o=- \(sessionID) 1 IN IP4 127.0.0.1", "s=-", "t=0 0"]
    if !bundle.isEmpty { lines.append("a=group:BUNDLE \(bundle.joined(separator: " "))") }
    // The lite agent says so for the whole session (RFC 8839 section 5.3).
    lines += ["a=ice-lite", "a=msid-semantic: WMS nightjar"]
    for (index, medium) in negotiation.offer.media.enumerated() {
      guard let place = negotiation.media.firstIndex(where: { $0.index == index }) else {
        lines += refusal(of: medium)
        continue
      }
      let source = negotiation.sent.firstIndex { $0.index == index }.map { sources[$0] }
      lines += self.lines(of: negotiation.media[place], source, offered: medium, isFirst: place == 0)
    }
    return lines.map { $0 + "\r\n" }.joined()
  }

  /// RFC 3264 section 6: port 0 refuses a medium. Nothing uses its transport, but aiortc refuses an answer without one.
  private func refusal(of medium: OfferedMedium) -> [String] {
    let formats = medium.formats.isEmpty ? "0" : medium.formats.joined(separator: " ")
    var lines = ["m=\(medium.type) 0 \(medium.transport) \(formats)", "c=IN IP4 0.0.0.0", "a=inactive"]
    if let identifier = medium.identifier { lines.append("a=mid:\(identifier)") }
    return lines + transportLines
  }

  /// The lines by which the peer reaches this side and knows it again.
  private var transportLines: [String] {
    [
      "a=rtcp-mux", "a=ice-ufrag:\(credentials.fragment)", "a=ice-pwd:\(credentials.password)",
      "a=fingerprint:sha-256 \(fingerprint.map(Self.hexadecimal).joined(separator: ":"))", "a=setup:passive",
    ]
  }

  private func lines(
    of medium: Negotiation.Medium, _ source: Source?, offered: OfferedMedium, isFirst: Bool
  ) -> [String] {
    let type = medium.codec.payloadType
    let retransmissionType = medium.retransmission.map { " \($0)" } ?? ""
    let word = medium.type.rawValue
    let port = candidates.first?.port ?? 9
    var lines = ["m=\(word) \(port) \(offered.transport) \(type)\(retransmissionType)", connectionLine]
    if let identifier = offered.identifier { lines.append("a=mid:\(identifier)") }
    lines += [source == nil ? "a=inactive" : "a=sendonly"] + transportLines
    if offered.allowsReducedSize { lines.append("a=rtcp-rsize") }
    if let reports = offered.roundTripReports { lines.append("a=rtcp-xr:rcvr-rtt=\(reports.rawValue)") }
    if let number = medium.sendTimeExtension {
      let direction = offered.isSendTimeOneWay ? "/sendonly" : ""
      lines.append("a=extmap:\(number)\(direction) \(SessionOffer.sendTimeExtension)")
    }
    lines += codecLines(of: medium)
    if let source {
      lines.append("a=msid:nightjar nightjar-\(word)")
      let retransmission = medium.retransmission.flatMap { _ in source.retransmission }
      // RFC 5576 section 4.2, RFC 4588 section 8.8.
      if let retransmission { lines.append("a=ssrc-group:FID \(source.ssrc) \(retransmission)") }
      for ssrc in [source.ssrc] + (retransmission.map { [$0] } ?? []) {
        lines.append("a=ssrc:\(ssrc) cname:\(canonicalName)")
      }
    }
    // Those of the first medium are the bundle's.
    if isFirst {
      lines += candidates.enumerated().map { "a=\($1.attribute(at: $0))" }
      lines.append("a=end-of-candidates")
    }
    return lines
  }

  private func codecLines(of medium: Negotiation.Medium) -> [String] {
    let type = medium.codec.payloadType
    var lines: [String]
    switch medium.type {
    case .video: lines = ["a=rtpmap:\(type) \(medium.codec.name == "h265" ? "H265" : "H264")/90000"]
    case .audio: lines = ["a=rtpmap:\(type) opus/48000/2"]
    }
    lines.append("a=fmtp:\(type) \(medium.parameters)")
    lines += medium.feedback.map { "a=rtcp-fb:\(type) \($0)" }
    if let retransmission = medium.retransmission {
      lines += ["a=rtpmap:\(retransmission) rtx/90000", "a=fmtp:\(retransmission) apt=\(type)"]
    }
    return lines
  }

  /// The address of the first candidate.
  private var connectionLine: String {
    guard let address = candidates.first?.address else { return "c=IN IP4 0.0.0.0" }
    return "c=IN \(address.isIPv6 ? "IP6" : "IP4") \(address.text)"
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return digits.count == 1 ? "0" + digits : digits
  }
}
