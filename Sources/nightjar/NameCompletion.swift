import ArgumentParser
import Control
import Credentials
import Media

/// Names that a shell completes: those that there are now. Where they cannot be had, there is none.
enum NameCompletion {
  /// The cameras of the stream that runs.
  static let cameras = CompletionKind.custom { words, _, _ in
    let client = ControlClient(
      path: value(of: "--socket", in: words) ?? ControlSocket.clientPath, patience: MediaTime(seconds: 1))
    guard let status = try? client.status().value else { return [] }
    return names(status.cameras.map(\.name) + status.absent.map(\.name))
  }

  /// The users of the file.
  static let users = CompletionKind.custom { words, _, _ in
    let path = value(of: "--users", in: words) ?? StandardPaths.usersFile
    return names((try? UsersFile(contentsOf: path).users.map(\.name.description)) ?? [])
  }

  /// The tokens of the file.
  static let tokens = CompletionKind.custom { words, _, _ in
    let path = value(of: "--tokens", in: words) ?? StandardPaths.tokensFile
    return names((try? TokensFile(contentsOf: path).names.map { "\($0)" }) ?? [])
  }

  /// The value of an option in a command line that is not complete yet.
  private static func value(of option: String, in words: [String]) -> String? {
    for (index, word) in words.enumerated() {
      if word == option, index + 1 < words.count { return words[index + 1] }
      if word.hasPrefix("\(option)=") { return String(word.dropFirst(option.utf8.count + 1)) }
    }
    return nil
  }

  /// Each once.
  private static func names(_ names: [String]) -> [String] { Array(Set(names)).sorted() }
}
