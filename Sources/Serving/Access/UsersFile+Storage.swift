import Platform

/// The reason why the users cannot be read or written.
package typealias UsersFileError = CredentialFileError<UsersFile>

extension UsersFile: CredentialFile {
  package typealias SyntaxError = UsersFileSyntaxError

  package static let content = "users"

  package static func creation(of path: String) -> String {
    "nightjar user add NAME --users \(ShellWord.quoted(path))"
  }
}
