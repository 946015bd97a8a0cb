package import Platform

/// The reason why a key is refused. No case carries any part of a key.
package enum SRTPKeyError: Failure, Hashable {
  /// The joint length of master key and salt differs from the suite's.
  case length(Int, suite: SRTPSuite)
  /// The first word is none of ``SRTPSuite``. The error does not carry the word, because it may be the key.
  case suite
  /// The text violates RFC 4568 as described.
  case syntax(String)
  /// An unsupported feature: a lifetime, a master key identifier, several keys, or session parameters.
  case unsupported(String)
  /// A key file that does not exist.
  case missing(path: String)
  /// A key file that is a directory, a device or a pipe.
  case notAFile(path: String)
  /// A key file that everybody may read or write.
  case exposed(path: String, mode: UInt32)
  /// A key file of another user, who may change it.
  case foreign(path: String, owner: UInt32)
  /// A key file that is larger than any key.
  case tooLarge(path: String, limit: Int)
  /// A key file without a key, with the reason.
  case content(path: String, reason: String)
  /// The system refused access.
  case system(path: String, reason: String, isForbidden: Bool)

  /// A one-line description for the person at the terminal.
  package var description: String {
    switch self {
    case .length(let count, let suite):
      "key and salt of \(count) bytes: \(suite.rawValue) takes \(suite.keyLength) and \(suite.saltLength), together "
        + "\(suite.keyLength + suite.saltLength)"
    case .suite:
      "a key is written SUITE inline:BASE64 (RFC 4568), and the first word is not a known suite: choose "
        + SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ")
    case .syntax(let what): "a key is written SUITE inline:BASE64 (RFC 4568): \(what)"
    case .unsupported(let what): "\(what) after a key is not supported: leave it out"
    case .missing(let path): "there is no key file \(path): write SUITE inline:BASE64 into it"
    case .notAFile(let path): "\(path) is not a plain file: name a plain file with the key"
    case .exposed(let path, let mode):
      "everybody can reach the key in \(path) (mode \(String(mode, radix: 8))): chmod 600 it, and make a new key"
    case .foreign(let path, let owner):
      "the key file \(path) belongs to user \(owner), who may change it: chown it"
    case .tooLarge(let path, let limit): "\(path) has more than \(limit) bytes, which no key has"
    case .content(let path, let reason): "\(path): \(reason)"
    case .system(let path, let reason, _): "cannot read \(path): \(reason)"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind {
    switch self {
    case .length, .suite, .syntax, .unsupported: .usage
    case .missing: .noInput
    case .notAFile, .tooLarge, .content: .data
    case .exposed, .foreign: .noPermission
    case .system(_, _, let isForbidden): isForbidden ? .noPermission : .inputOutput
    }
  }
}
