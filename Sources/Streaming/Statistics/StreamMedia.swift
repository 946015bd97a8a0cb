import RTP

/// The media of a stream that a viewer gets.
package struct StreamMedia: OptionSet, Hashable, Sendable, CustomStringConvertible {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The pictures.
  package static let picture = StreamMedia(rawValue: 1)
  /// The sound.
  package static let sound = StreamMedia(rawValue: 2)

  /// The names: `picture`, `sound`.
  package var names: [String] { (contains(.picture) ? ["picture"] : []) + (contains(.sound) ? ["sound"] : []) }
  /// The media for a person: `picture and sound`.
  package var description: String { names.joined(separator: " and ") }
}

extension StreamPayload {
  /// The media in the packets.
  var media: StreamMedia {
    switch format.encoding.mediaType {
    case .video: format.sound == nil ? .picture : [.picture, .sound]
    case .audio: .sound
    }
  }
}
