import Platform
import RTP
import RTSP
package import SRTP

/// One way to set up a track: a request SETUP with one profile.
struct SetUpAttempt {
  /// The track's number in the session: 0 is the picture.
  let number: Int
  /// The track.
  var track: ReceivedDescription.Track
  /// The profile that is asked for.
  let profile: TransportProfile
  /// The keys of a profile with encryption, once the request is made.
  var keys: TrackKeys?

  /// Returns the attempts for a track, the best first. Nothing goes in the clear over UDP where the connection is encrypted, and no
  /// key is believed that came in the clear.
  ///
  /// - Throws: ``ReceiverError/unsupported(_:)``, ``ReceiverError/key(_:)``.
  static func all(
    of track: ReceivedDescription.Track, number: Int, _ way: RTSPDialogue.Way, isEncrypted: Bool
  ) throws(ReceiverError) -> [SetUpAttempt] {
    func attempt(_ profile: TransportProfile) -> SetUpAttempt {
      SetUpAttempt(number: number, track: track, profile: profile)
    }
    let profile = track.profile
    switch (way, isEncrypted) {
    case (.interleaved, true):
      // Within TLS, packets need no encryption of their own; some servers have no other.
      return profile.isProtected ? [attempt(profile.unprotected), attempt(profile)] : [attempt(profile)]
    case (_, true):
      guard profile.isProtected else {
        throw .unsupported("the server encrypts no packets over UDP, and rtsps sends none in the clear: use TCP")
      }
      return [attempt(profile)]
    case (_, false):
      guard !profile.isProtected else {
        throw .key("the \(track.name)'s key came over a connection that is not encrypted: use rtsps")
      }
      return [attempt(profile)]
    }
  }

  /// Returns the value of `Transport`, RFC 2326 section 12.39.
  func transport(_ way: RTSPDialogue.Way) -> String {
    switch way {
    case .interleaved:
      "\(profile.rawValue)/TCP;unicast;interleaved=\(2 * number)-\(2 * number + 1)"
    case .udp(let ports):
      "\(profile.rawValue);unicast;client_port=\(ports[min(number, ports.count - 1)])"
    case .multicast: "\(profile.rawValue);multicast"
    }
  }
}

/// The keys of one track: the sender's, and the one of our own reports.
package struct TrackKeys {
  /// A maker of a new key of a suite, which returns it with its MIKEY message in base64 and the source that it is for.
  package typealias Maker = (SRTPSuite) -> (key: SRTPKey, source: UInt32, message: String)

  /// The sender's key.
  var sender: ReceivedDescription.Track.SenderKey
  /// The key of our reports; nil is the sender's.
  let control: SRTPKey?
  /// The source of our reports, which the message names; nil leaves it open.
  let controlSource: UInt32?
  /// The MIKEY message that gives the server our key; nil where both sides have one key.
  package let controlMessage: String?

  /// Creates the keys. Where the sender's key is for one direction only, our reports get a key of their own.
  init(_ sender: ReceivedDescription.Track.SenderKey, _ make: Maker) {
    self.sender = sender
    let own = sender.isOneWay ? make(sender.key.suite) : nil
    (control, controlSource, controlMessage) = (own?.key, own?.source, own?.message)
  }

  /// Creates keys where both sides have one: there is nobody to give another one to.
  init(sharing sender: ReceivedDescription.Track.SenderKey) {
    self.sender = sender
    (control, controlSource, controlMessage) = (nil, nil, nil)
  }
}
