import CFuzzer
import CredentialsParsing
import Glibc

/// Any bytes as an `Authorization` header, and as a users file: what the latter reads it writes, and reads the same again.
@main enum FuzzCredentials {
  static func main() {
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    exit(
      LLVMFuzzerRunDriver(&count, &arguments) { data, size in
        FuzzCredentials.take(Array(UnsafeRawBufferPointer(start: data, count: size)))
        return 0
      })
  }

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
