import Glibc
import Platform

extension SRTPKey {
  /// The maximum size of a key file in bytes.
  package static let fileLimit = 1024

  /// Reads the key in a file: one line `SUITE inline:BASE64`, or a whole SDP line `a=crypto:TAG SUITE inline:BASE64`.
  /// Empty lines and those that begin with `#` are ignored.
  ///
  /// The checks apply to the opened file, not to its path.
  ///
  /// - Throws: ``SRTPKeyError``, also for a file that everybody may read or write, or that belongs to another user.
  package init(contentsOf path: String) throws(SRTPKeyError) {
    let text = String(decoding: try Self.read(path), as: UTF8.self)
    let lines = text.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " || $0 == "\t" } }
      .filter { !$0.isEmpty && !$0.hasPrefix("#") }
    guard lines.count == 1, let line = lines.first else {
      throw .content(path: path, reason: "\(lines.count) lines instead of one with a key")
    }
    do throws(SRTPKeyError) {
      let prefix = "a=crypto:"
      if line.hasPrefix(prefix) {
        self = try CryptoAttribute(parsing: String(line.dropFirst(prefix.count))).key
      } else {
        self = try CryptoAttribute.key(line.split(separator: " ")[...])
      }
    } catch {
      throw .content(path: path, reason: error.description)
    }
  }

  private static func read(_ path: String) throws(SRTPKeyError) -> [UInt8] {
    do throws(PlainFileError) {
      return try PlainFile.contents(of: path, limit: fileLimit, others: .nothing).bytes
    } catch {
      switch error {
      case .missing, .system(false, ENOTDIR): throw .missing(path: path)
      case .notAFile: throw .notAFile(path: path)
      case .exposed(let mode): throw .exposed(path: path, mode: mode)
      case .foreign(let owner): throw .foreign(path: path, owner: owner)
      case .tooLarge: throw .tooLarge(path: path, limit: fileLimit)
      case .system(_, let errorNumber):
        let isForbidden = errorNumber == EACCES || errorNumber == EPERM
        throw .system(path: path, reason: SystemFailure.text(errorNumber), isForbidden: isForbidden)
      }
    }
  }
}
