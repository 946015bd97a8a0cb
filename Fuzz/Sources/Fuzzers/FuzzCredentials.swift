import CredentialsParsing

/// Any bytes as an `Authorization` header, and as a users file: what the latter reads it writes, and reads the same again.
enum FuzzCredentials {
  static func take(_ bytes: [UInt8]) {
    do throws(DigestAuthorizationError) {
      let header = try DigestAuthorization(parsing: bytes)
      precondition(header.response.count == header.algorithm.hexLength)
    } catch {
      precondition(!error.description.isEmpty)
    }
    do throws(UsersFileSyntaxError) {
      let file = try UsersFile(parsing: bytes)
      let again = try UsersFile(parsing: file.bytes)
      precondition(again.users == file.users && again.bytes == file.bytes, "a file that is read otherwise than written")
    } catch {
      precondition(!error.description.isEmpty)
    }
  }
}
