package import Serving

/// The answers about phones, in words.
package enum PhoneText {
  /// Returns the link, under its QR code where that can be seen.
  package static func text(_ answer: PhoneCodeAnswer, withCode: Bool) -> String {
    let minutes = answer.seconds / 60
    return (withCode ? QRCode.text(answer.qr) : "") + """
      \(answer.url)
      Open this link on the phone, within \(minutes) minutes. It works once, and the phone then may \
      \(answer.role == Role.control.rawValue ? "watch and change things" : "watch").

      """
  }

  /// Returns the phones, a line each.
  package static func text(_ answer: PhonesAnswer) -> String {
    guard !answer.phones.isEmpty else { return "no phones; let one in: nightjar ctl phone add\n" }
    return answer.phones.map { "\($0.name)\($0.role == Role.view.rawValue ? "" : ", \($0.role)")\n" }.joined()
  }
}
