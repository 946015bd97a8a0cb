import Appliance
import ArgumentParser
import Platform
import Serving

/// The names that a shell completes: the present ones, or none if they cannot be read.
enum NameCompletion {
  /// The cameras of the running stream.
  static let cameras = CompletionKind.custom { words, _, _ in
    let client = ControlClient(
      path: value(of: "--socket", in: words) ?? ControlSocket.clientPath, patience: Duration(seconds: 1))
    guard let status = try? client.status().value else { return [] }
    return names(status.cameras.map(\.name) + status.absent.map(\.name))
  }

  /// The values of `--audio`: words, and the microphones of this host.
  static let microphones = CompletionKind.custom { _, _, _ in
    // zsh takes what follows a colon for a description.
    let colon = CompletionShell.requesting == .zsh ? "\\:" : ":"
    return ["auto", "none", "test"] + MicrophoneList.names.map { $0.replacing(":", with: colon) }
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

  /// Returns the value of an option in an incomplete command line.
  private static func value(of option: String, in words: [String]) -> String? {
    for (index, word) in words.enumerated() {
      if word == option, index + 1 < words.count { return words[index + 1] }
      if word.hasPrefix("\(option)=") { return String(word.dropFirst(option.utf8.count + 1)) }
    }
    return nil
  }

  /// Returns each name once, sorted.
  private static func names(_ names: [String]) -> [String] { Array(Set(names)).sorted() }
}
