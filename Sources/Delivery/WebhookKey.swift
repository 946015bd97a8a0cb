import FoundationEssentials
import Glibc
package import Platform
import TLS

/// The key by which the receiver of a webhook knows that an event comes from this host.
///
/// The signature is that of Standard Webhooks 1.0 (https://www.standardwebhooks.com): receivers check it with its libraries.
package struct WebhookKey: Hashable, Sendable {
  private let bytes: [UInt8]

  /// The allowed lengths of a key in bytes. Fewer can be guessed.
  static let limits = 16...256
  /// The largest file in bytes.
  static let fileLimit = 1024

  /// Creates a key of the text of a file: `whsec_` and the key in Base64, or the key as it stands. Nil for a key of another
  /// length.
  package init?(text: String) {
    let line = text.drop { $0.isWhitespace }
    guard let end = line.lastIndex(where: { !$0.isWhitespace }) else { return nil }
    let word = line[...end]
    let bytes = word.hasPrefix("whsec_") ? Data(base64Encoded: String(word.dropFirst(6))) : Data(word.utf8)
    guard let bytes, Self.limits.contains(bytes.count) else { return nil }
    self.bytes = Array(bytes)
  }

  /// Reads the key in the file at `path`, which nobody else may read.
  ///
  /// - Throws: ``SecretFileError``.
  package init(contentsOf path: String) throws(SecretFileError) {
    let text = try SecretFile.text(of: path, limit: Self.fileLimit)
    guard let key = Self(text: text) else {
      throw SecretFileError(
        path: path,
        cause: .content(
          "a key has \(Self.limits.lowerBound) to \(Self.limits.upperBound) bytes; make one with: "
            + "echo whsec_$(openssl rand -base64 32)"))
    }
    self = key
  }

  /// Returns the value of `webhook-signature` for a message.
  package func signature(id: String, seconds: Int64, body: [UInt8]) -> String {
    let code = HashFunction.sha256.authenticationCode(of: Array("\(id).\(seconds).".utf8) + body, key: bytes)
    return "v1,\(Data(code).base64EncodedString())"
  }
}

/// A file with a secret, which no other user of the host may read.
enum SecretFile {
  /// Returns the text of the file at `path`.
  ///
  /// - Throws: ``SecretFileError``.
  static func text(of path: String, limit: Int) throws(SecretFileError) -> String {
    do throws(PlainFileError) {
      return String(decoding: try PlainFile.contents(of: path, limit: limit, others: .nothing).bytes, as: UTF8.self)
    } catch {
      throw SecretFileError(path: path, cause: .file(error, limit: limit))
    }
  }
}

/// The reason why a file with a secret is not used.
package struct SecretFileError: Failure, Hashable {
  /// The cause of the error.
  package enum Cause: Hashable, Sendable {
    /// The file was not read, or it is not secret; the limit is in bytes.
    case file(PlainFileError, limit: Int)
    /// The file has another content; the text is the remedy.
    case content(String)
  }

  /// The path of the file.
  package let path: String
  /// The cause of the error.
  package let cause: Cause

  /// One line for the user at the terminal.
  package var description: String {
    let reason =
      switch cause {
      case .file(.missing, _): "there is no such file"
      case .file(.notAFile, _): "it is no plain file"
      case .file(.exposed, _): "other users may read or write it; chmod 600 \(path)"
      case .file(.foreign, _): "it belongs to another user; chown it to the one that runs nightjar, or to root"
      case .file(.tooLarge, let limit): "it has more than \(limit) bytes"
      case .file(.system(_, let errorNumber), _): SystemFailure.text(errorNumber)
      case .content(let remedy): remedy
      }
    return "\(path): \(reason)"
  }

  /// The failure's kind.
  package var kind: FailureKind { .noInput }
}
