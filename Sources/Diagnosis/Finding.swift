import Credentials
import Glibc

/// What mends something.
public enum Mend: Hashable, Sendable {
  /// A command for a shell, complete as it stands.
  case command(String)
  /// Something that no command does, or that a person has to choose.
  case advice(String)

  /// Commands that need root's rights, one after the other: by sudo, unless this is root already.
  public static func asRoot(_ commands: String...) -> Mend {
    .command(commands.map { geteuid() == 0 ? $0 : "sudo \($0)" }.joined(separator: " && "))
  }

  /// What writes lines into a file of root's, one each second.
  static func writing(_ lines: String..., to path: String) -> Mend {
    let path = ShellWord.quoted(path)
    let end = geteuid() == 0 ? "> \(path)" : "| sudo tee \(path) > /dev/null"
    return .command(lines.map { "echo \(ShellWord.quoted($0)) \(end)" }.joined(separator: "; sleep 1; "))
  }
}

/// One line of the doctor's.
public struct Finding: Hashable, Sendable {
  /// What was found.
  public let kind: FindingKind
  /// The camera that it is about; nil where it is about the machine.
  public let camera: String?
  /// One line for a person.
  public let text: String
  /// What mends it, the best first.
  public let mends: [Mend]
  /// What was measured, by a name that stays the same: `fps`, `headroom_percent`.
  public let figures: [String: Double]

  /// A finding.
  public init(
    _ kind: FindingKind, _ text: String, camera: String? = nil, mends: [Mend] = [], figures: [String: Double] = [:]
  ) {
    (self.kind, self.camera, self.text, self.mends, self.figures) = (kind, camera, text, mends, figures)
  }

  /// How bad it is.
  public var status: FindingStatus { kind.status }

  /// The same of a camera.
  public func about(_ camera: String?) -> Finding {
    Finding(kind, text, camera: camera, mends: mends, figures: figures)
  }
}
