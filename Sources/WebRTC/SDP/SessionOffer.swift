/// An offer of a browser (RFC 3264, RFC 8829), with what a sender of live pictures needs of it.
package struct SessionOffer: Sendable {
  /// The media, in the order of their `m=` lines.
  package internal(set) var media: [OfferedMedium] = []
  /// The groups of `a=group:BUNDLE`, each a list of `mid`s (RFC 9143).
  package internal(set) var bundles: [[String]] = []

  /// The limits of an offer. Browsers stay far below.
  package enum Limits {
    /// The most bytes of an offer.
    package static let bytes = 65_536
    /// The most bytes of a line.
    package static let lineBytes = 4096
    /// The most `m=` lines.
    package static let media = 16
    /// The most payload types of an `m=` line.
    package static let payloadTypes = 128
    /// The most characters of a `mid`.
    package static let identifierBytes = 64
  }

  /// The name of the header extension with the time of sending, draft-alvestrand-rmcat-remb-03 section 3.
  static let sendTimeExtension = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
}

/// One `m=` line of an offer with its attributes.
package struct OfferedMedium: Sendable {
  /// The direction of a medium as the peer sees it, RFC 8866 section 6.7.
  package enum Direction: String, Sendable {
    case sendrecv, sendonly, recvonly, inactive

    /// `true` if the peer takes what is sent.
    package var receives: Bool { self == .sendrecv || self == .recvonly }
  }

  /// The role in the handshake of DTLS that the peer offers, RFC 8842 section 5.3.
  package enum Setup: String, Sendable {
    case active, passive, actpass, holdconn
  }

  /// The participants that send reference times to learn their round-trip time, RFC 3611 section 5.1.
  package enum RoundTripReports: String, Sendable {
    case all, sender

    /// Parses a format of `a=rtcp-xr`, such as `rcvr-rtt=all:10000`; `nil` for another one.
    init?(format: Substring) {
      guard format.hasPrefix("rcvr-rtt=") else { return nil }
      self.init(rawValue: String(format.dropFirst(9).prefix { $0 != ":" }))
    }
  }

  /// The hash of a certificate, RFC 8122 section 5.
  package struct Fingerprint: Hashable, Sendable {
    /// The hash function in lower case: `sha-256`.
    package var hashFunction: String
    /// The hash.
    package var bytes: [UInt8]
  }

  /// A payload type and what it stands for.
  package struct Codec: Sendable {
    /// The payload type, 0 to 127.
    package let payloadType: UInt8
    /// The encoding name in lower case: `h264`.
    package internal(set) var name = ""
    /// The clock rate in ticks a second.
    package internal(set) var clockRate = 0
    /// The number of channels.
    package internal(set) var channels = 1
    /// The parameters of `a=fmtp`, names in lower case.
    package internal(set) var parameters: [String: String] = [:]
    /// The values of `a=rtcp-fb`: `nack pli`.
    package internal(set) var feedback: Set<String> = []
  }

  /// `video`, `audio`, `application` or another word.
  package let type: String
  /// The transport: `UDP/TLS/RTP/SAVPF`.
  package let transport: String
  /// The formats as in the `m=` line, for an answer that refuses the medium.
  package let formats: [Substring]
  /// The codecs, the preferred one first; empty where the formats are no payload types.
  package internal(set) var codecs: [Codec]
  /// `a=mid`.
  package internal(set) var identifier: String?
  /// The direction; without an attribute, both.
  package internal(set) var direction = Direction.sendrecv
  /// `a=rtcp-mux`.
  package internal(set) var multiplexesControl = false
  /// `a=rtcp-rsize` (RFC 5506).
  package internal(set) var allowsReducedSize = false
  /// `a=rtcp-xr:rcvr-rtt=…` (RFC 3611 section 5.1), of the medium or the session; `nil` without.
  package internal(set) var roundTripReports: RoundTripReports?
  /// The number of the header extension with the time of sending (abs-send-time), 1 to 14; `nil` if it is not offered.
  package internal(set) var sendTimeExtension: UInt8?
  /// `true` if the peer offers only to receive it, as `recvonly` (RFC 8285 section 6).
  package internal(set) var isSendTimeOneWay = false
  /// `a=ice-ufrag` and `a=ice-pwd`, of the medium or the session.
  package internal(set) var fragment: String?
  package internal(set) var password: String?
  /// `a=ice-lite` of the session.
  package internal(set) var isLite = false
  /// `a=fingerprint`, of the medium or the session.
  package internal(set) var fingerprints: [Fingerprint] = []
  var hasOwnFingerprints = false
  /// `a=setup`, of the medium or the session.
  package internal(set) var setup: Setup?
  /// `true` if the port is 0, and `a=bundle-only` does not explain it: the medium is not offered.
  package internal(set) var isRefused: Bool

  /// Returns the codec with this payload type.
  package func codec(_ payloadType: UInt8) -> Codec? { codecs.first { $0.payloadType == payloadType } }

  /// The credentials of the peer; `nil` without valid ones.
  package var credentials: ICECredentials? {
    guard let fragment, let password else { return nil }
    return ICECredentials(fragment: fragment, password: password)
  }
}
