import Glibc
import Platform
import Serving

/// A remedy for a finding.
package enum Mend: Hashable, Sendable {
  /// A complete shell command.
  case command(String)
  /// Advice where no command helps, or where a person must choose.
  case advice(String)

  /// Returns commands that need root's rights, one after the other: by sudo, unless the user is root already.
  package static func asRoot(_ commands: String...) -> Mend {
    .command(commands.map { geteuid() == 0 ? $0 : "sudo \($0)" }.joined(separator: " && "))
  }

  /// Returns the command that writes lines into a file of root's, one each second.
  static func writing(_ lines: String..., to path: String) -> Mend {
    let path = ShellWord.quoted(path)
    let end = geteuid() == 0 ? "> \(path)" : "| sudo tee \(path) > /dev/null"
    return .command(lines.map { "echo \(ShellWord.quoted($0)) \(end)" }.joined(separator: "; sleep 1; "))
  }
}

/// A line of the doctor's report.
package struct Finding: Hashable, Sendable {
  /// The kind of finding.
  package let kind: FindingKind
  /// The camera concerned; nil for the machine.
  package let camera: String?
  /// A one-line message for the terminal.
  package let text: String
  /// The remedies, the best first.
  package let mends: [Mend]
  /// The measured values, by stable names: `fps`, `headroom_percent`.
  package let figures: [String: Double]

  /// Creates a finding.
  package init(
    _ kind: FindingKind, _ text: String, camera: String? = nil, mends: [Mend] = [], figures: [String: Double] = [:]
  ) {
    (self.kind, self.camera, self.text, self.mends, self.figures) = (kind, camera, text, mends, figures)
  }

  /// The finding's severity.
  package var status: FindingStatus { kind.status }

  /// Returns the finding for a camera.
  package func about(_ camera: String?) -> Finding {
    Finding(kind, text, camera: camera, mends: mends, figures: figures)
  }
}
