import Platform

/// The reason why the tokens cannot be read or written.
package typealias TokensFileError = CredentialFileError<TokensFile>

extension TokensFile: CredentialFile {
  package typealias SyntaxError = TokensFileSyntaxError

  package static let content = "tokens"

  package static func creation(of path: String) -> String {
    "nightjar token add NAME --tokens \(ShellWord.quoted(path))"
  }
}
