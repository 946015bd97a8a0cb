import Platform

/// The settings of Web Push, by which browsers learn of alerts while their page is closed.
package struct PushSettings: Hashable, Sendable {
  /// `true` lets browsers subscribe. Nothing is sent before one has.
  package var isOn = true
  /// A URL `mailto:` or `https:` of whoever runs the host, for push services; nil for none.
  package var contact: String?

  /// Creates the default settings.
  package init() {}

  /// The longest contact in bytes.
  private static let contactLimit = 200

  /// Parses `anna@example.org`, or a URL `mailto:` or `https:`.
  static func contact(_ text: String) throws(ValueError) -> String? {
    let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !#""\<>"#.utf8.contains($0) }
    let isPage = text.hasPrefix("https://") && text.utf8.count > 8
    let mail = text.hasPrefix("mailto:") ? text.dropFirst(7) : text[...]
    let parts = mail.split(separator: "@", omittingEmptySubsequences: false)
    let isMail = parts.count == 2 && parts.allSatisfy { !$0.isEmpty } && !mail.contains("/")
    guard isPlain, text.utf8.count <= contactLimit, isPage || isMail else {
      throw ValueError("write a mail address or https://HOST/PATH, \(contactLimit) bytes at most")
    }
    return isPage ? text : "mailto:\(mail)"
  }
}
