/// The microphones of this host as `nightjar devices` shows them.
package enum MicrophoneText {
  /// Returns the microphones as text.
  package static func text(_ list: MicrophoneList) -> String {
    guard !list.entries.isEmpty else { return "no microphone found: nightjar stream has no sound\n" }
    var lines = list.entries.flatMap(lines)
    if let first = list.entries.first(where: { $0.obstacle == nil }) {
      lines.append("\nHear it: nightjar stream --audio \(first.device) --rtsp")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func lines(_ entry: MicrophoneListing) -> [String] {
    var lines = ["\(entry.device)  \(entry.name) (\(entry.path))"]
    if let camera = entry.camera { lines.append("  camera   \(camera)") }
    if let port = entry.usbPort { lines.append("  usb      \(port)") }
    if let obstacle = entry.obstacle { lines.append("  unusable \(obstacle)") }
    guard let offer = entry.offer else { return lines }
    let rates = offer.rates.isEmpty ? range(offer.rateLimits) : offer.rates.map(String.init).joined(separator: ", ")
    lines.append("  rates    \(rates) Hz")
    lines.append("  formats  \(offer.formats.joined(separator: ", "))")
    lines.append("  channels \(range(offer.channels))")
    return lines
  }

  private static func range(_ range: ClosedRange<Int>) -> String {
    range.lowerBound == range.upperBound ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
  }

  /// A microphone as JSON.
  package struct Entry: Encodable {
    let device: String
    let name: String
    let path: String
    let camera: String?
    let usbPort: String?
    let usable: Bool
    let obstacle: String?
    let rates: [Int]
    let rateRange: [Int]?
    let formats: [String]
    let channelRange: [Int]?

    /// Creates the form of `entry`.
    package init(_ entry: MicrophoneListing) {
      (device, name, path) = (entry.device, entry.name, entry.path)
      (camera, usbPort) = (entry.camera, entry.usbPort)
      (usable, obstacle) = (entry.obstacle == nil, entry.obstacle)
      (rates, formats) = (entry.offer?.rates ?? [], entry.offer?.formats ?? [])
      rateRange = entry.offer.map { [$0.rateLimits.lowerBound, $0.rateLimits.upperBound] }
      channelRange = entry.offer.map { [$0.channels.lowerBound, $0.channels.upperBound] }
    }
  }
}
