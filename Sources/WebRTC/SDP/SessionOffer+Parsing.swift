extension SessionOffer {
  /// Parses an offer. Lines that mean nothing to a sender of live pictures are skipped.
  ///
  /// - Throws: ``OfferError``.
  package init(parsing text: String) throws(OfferError) {
    let count = text.utf8.count
    guard count <= Limits.bytes else { throw .length(count, limit: Limits.bytes) }
    var session = OfferedMedium(type: "", transport: "", formats: [], codecs: [], isRefused: false)
    var hasBegun = false
    // By bytes: "\r\n" is one character.
    for (index, bytes) in text.utf8.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
      guard bytes.count <= Limits.lineBytes else { throw .line(index + 1, limit: Limits.lineBytes) }
      let line = Substring(bytes.last == 13 ? bytes.dropLast() : bytes)
      if line.isEmpty { continue }
      guard hasBegun else {
        guard line == "v=0" else { throw .noDescription }
        hasBegun = true
        continue
      }
      let value = line.dropFirst(2)
      switch line.prefix(2) {
      case "m=":
        guard media.count < Limits.media else { throw .media(limit: Limits.media) }
        media.append(try OfferedMedium(line: value, number: index + 1, session: session))
      case "a=":
        let fault: OfferError = .malformed(line: index + 1)
        if media.isEmpty {
          if value.hasPrefix("group:BUNDLE ") {
            bundles.append(value.dropFirst(13).split(separator: " ").map(String.init))
          } else {
            guard session.take(value) else { throw fault }
          }
        } else {
          guard media[media.count - 1].take(value) else { throw fault }
        }
      default:
        guard line.utf8.count >= 2, line.utf8.dropFirst().first == 0x3d else { throw .malformed(line: index + 1) }
      }
    }
    guard hasBegun else { throw .noDescription }
    guard !media.isEmpty else { throw .noMedia }
    let names = media.compactMap(\.identifier)
    guard Set(names).count == names.count else { throw .repeatedIdentifier }
  }
}

extension OfferedMedium {
  /// Parses an `m=` line: `video 9 UDP/TLS/RTP/SAVPF 96 97`.
  fileprivate init(line: Substring, number: Int, session: OfferedMedium) throws(OfferError) {
    let words = line.split(separator: " ")
    // Its words are repeated where the answer refuses the medium.
    guard words.count >= 4, let port = UInt16(words[1]), line.utf8.allSatisfy({ (0x20..<0x7f).contains($0) })
    else { throw .malformed(line: number) }
    let formats = Array(words[3...])
    guard formats.count <= SessionOffer.Limits.payloadTypes else {
      throw .payloadTypes(line: number, limit: SessionOffer.Limits.payloadTypes)
    }
    type = String(words[0])
    transport = String(words[2])
    self.formats = formats
    codecs = formats.compactMap { UInt8($0) }.filter { $0 < 128 }.map { Codec(payloadType: $0) }
    isRefused = port == 0
    (fragment, password, isLite) = (session.fragment, session.password, session.isLite)
    (fingerprints, setup, direction) = (session.fingerprints, session.setup, session.direction)
    roundTripReports = session.roundTripReports
  }

  /// Takes an attribute, without `a=`. Returns `false` if it is malformed.
  fileprivate mutating func take(_ attribute: Substring) -> Bool {
    let name = attribute.prefix { $0 != ":" }
    let value = attribute.dropFirst(name.count + 1)
    switch name {
    case "mid":
      guard !value.isEmpty, value.utf8.count <= SessionOffer.Limits.identifierBytes,
        value.utf8.allSatisfy(Self.isTokenByte)
      else { return false }
      identifier = String(value)
    case "rtcp-mux", "rtcp-mux-only": multiplexesControl = true
    case "rtcp-rsize": allowsReducedSize = true
    case "extmap":
      // RFC 8285 section 6: the number, perhaps a direction, the name. Extensions of two bytes' header are not needed.
      let words = value.split(separator: " ")
      if words.count >= 2, words[1] == SessionOffer.sendTimeExtension {
        let direction = words[0].drop { $0 != "/" }
        isSendTimeOneWay = direction == "/recvonly"
        // A peer that only sends it, or neither, reads none of ours.
        let isRead = isSendTimeOneWay || direction.isEmpty || direction == "/sendrecv"
        let number = isRead ? UInt8(words[0].prefix { $0 != "/" }) : nil
        sendTimeExtension = number.flatMap { (1...14).contains($0) ? $0 : nil }
      }
    case "rtcp-xr":
      // RFC 3611 section 5.1. Other blocks are of no use to a sender.
      roundTripReports = value.split(separator: " ").lazy.compactMap(RoundTripReports.init(format:)).first
    case "bundle-only": isRefused = false
    case "ice-lite": isLite = true
    case "ice-ufrag": fragment = String(value)
    case "ice-pwd": password = String(value)
    case "fingerprint": return takeFingerprint(value)
    case "setup":
      guard let role = Setup(rawValue: String(value)) else { return false }
      setup = role
    case "rtpmap", "fmtp", "rtcp-fb": return takeCodec(name, value)
    default:
      if let direction = Direction(rawValue: String(attribute)) { self.direction = direction }
    }
    return true
  }

  /// A byte of a token, RFC 8866 section 9, so that a `mid` can be written into an answer as it came.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte < 0x7f && !"\"(),/:;<=>?@[\\]".utf8.contains(byte)
  }

  /// `sha-256 AB:CD:…`. A medium's own fingerprints replace the session's (RFC 8122 section 5).
  private mutating func takeFingerprint(_ value: Substring) -> Bool {
    let words = value.split(separator: " ")
    guard words.count == 2, fingerprints.count < 8 else { return false }
    let pairs = words[1].split(separator: ":", omittingEmptySubsequences: false)
    let bytes = pairs.compactMap { $0.utf8.count == 2 ? UInt8($0, radix: 16) : nil }
    guard bytes.count == pairs.count, bytes.count <= 64 else { return false }
    if !type.isEmpty, !hasOwnFingerprints { (fingerprints, hasOwnFingerprints) = ([], true) }
    fingerprints.append(Fingerprint(hashFunction: words[0].lowercased(), bytes: bytes))
    return true
  }

  /// `96 H264/90000`, `96 packetization-mode=1;…`, `96 nack pli`, `* nack`.
  private mutating func takeCodec(_ name: Substring, _ value: Substring) -> Bool {
    let words = value.split(separator: " ", maxSplits: 1)
    guard words.count == 2 else { return false }
    if name == "rtcp-fb", words[0] == "*" {
      for index in codecs.indices { codecs[index].feedback.insert(String(words[1])) }
      return true
    }
    guard let payloadType = UInt8(words[0]) else { return false }
    // Of formats that the m= line does not have, RFC 3264 says nothing.
    guard let index = codecs.firstIndex(where: { $0.payloadType == payloadType }) else { return true }
    switch name {
    case "rtpmap":
      let parts = words[1].split(separator: "/")
      guard parts.count >= 2, parts[0].utf8.count <= SessionOffer.Limits.identifierBytes,
        parts[0].utf8.allSatisfy(Self.isTokenByte), let clockRate = Int(parts[1]), clockRate > 0
      else { return false }
      codecs[index].name = parts[0].lowercased()
      codecs[index].clockRate = clockRate
      codecs[index].channels = parts.count > 2 ? Int(parts[2]) ?? 1 : 1
    case "fmtp":
      for parameter in words[1].split(separator: ";") {
        let pair = parameter.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
        if pair.count == 2 { codecs[index].parameters[pair[0].lowercased()] = pair[1] }
      }
    default: codecs[index].feedback.insert(String(words[1]))
    }
    return true
  }
}
