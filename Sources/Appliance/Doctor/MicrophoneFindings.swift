package import Capture
import Glibc
import Platform
import Serving
package import Sound

/// The findings on a microphone.
package enum MicrophoneFindings {
  /// A level above which a microphone surely records, in dBFS: the noise of a quiet room.
  private static let audible = -60.0

  /// Returns the findings on the sound that arrived.
  ///
  /// - Parameters:
  ///   - name: the microphone's name, for people.
  ///   - note: what follows the name.
  ///   - level: the level of the sound.
  ///   - silence: the seconds for which the running stream has heard nothing but digital silence; nil for a trial, where
  ///     the level tells.
  ///   - card: the name of the microphone's card for `amixer`; nil for a device that is no card's.
  ///   - listening: the command that shows the level.
  ///   - controls: the controls of that card's mixer.
  package static func findings(
    _ name: String, _ note: String, level: SoundLevel, silence: Double? = nil, card: String?, listening: Mend,
    controls: [RecordingControl]
  ) -> [Finding] {
    var figures = ["rms_dbfs": level.rms, "peak_dbfs": level.peak]
    figures["digital_silence_seconds"] = silence
    guard level.peak < audible else {
      return [Finding(.microphone, "\(name), \(note), \(decibels(level))", figures: figures)]
    }
    var found: [Finding] = []
    if let card, let control = controls.switchedOff {
      found.append(
        Finding(
          .microphoneMuted, "\(name): the switch \(control.label) of the card's mixer is off",
          mends: mends(card, control, "cap"), figures: figures))
    }
    if let card, let control = controls.turnedDown {
      found.append(
        Finding(
          .microphoneMuted, "\(name): the volume \(control.label) of the card's mixer is zero",
          mends: mends(card, control, "capture 80%"), figures: figures))
    }
    guard found.isEmpty else { return found }
    guard silence.map({ $0 >= 1 }) ?? level.isDigitalSilence else {
      return [Finding(.microphone, "\(name), \(note), \(decibels(level))", figures: figures)]
    }
    let mixer = card.map { [Mend.command("alsamixer --view=capture --card=\(ShellWord.quoted($0))")] } ?? []
    return [
      Finding(
        .microphoneSilent,
        "\(name), \(note): it records digital silence" + (silence.map { " for \(Int($0)) s now" } ?? ""),
        mends: [
          .advice("look for a switch or a cap on the microphone. Then check the level:"), listening,
        ] + mixer + [.advice("or another microphone: nightjar devices")], figures: figures)
    ]
  }

  /// Returns the finding on a running stream without sound that may take any microphone.
  ///
  /// - Parameters:
  ///   - microphone: the microphone that the stream would take now, for people; nil where there is none.
  ///   - origin: what started the stream.
  package static func soundless(_ microphone: String?, _ origin: StreamOrigin) -> Finding {
    guard let microphone else { return Finding(.microphone, "no microphone: the running stream has no sound") }
    return Finding(
      .microphoneUnused, "\(microphone) is there, but the running stream began without a microphone",
      mends: [origin.restart])
  }

  /// Returns the command that shows the level of an unused microphone for five seconds.
  static func listening(to device: String) -> Mend {
    let converting = device.hasPrefix("hw:") ? "plug" + device : device
    return .command("arecord -D \(ShellWord.quoted(converting)) -d 5 -f cd -vv /dev/null")
  }

  private static func decibels(_ level: SoundLevel) -> String {
    "level \(Terminal.decimal(level.rms, digits: 0)) dBFS, peak \(Terminal.decimal(level.peak, digits: 0)) dBFS"
  }

  /// Returns the remedies: the command that applies `change` to a control, and how to keep the change.
  private static func mends(_ card: String, _ control: RecordingControl, _ change: String) -> [Mend] {
    let card = ShellWord.quoted(card)
    // The name comes from the device; a strange one is chosen on the screen.
    guard control.hasPlainName else {
      return [.command("alsamixer --view=capture --card=\(card)"), keep]
    }
    let name = ShellWord.quoted(control.index == 0 ? control.name : "\(control.name),\(control.index)")
    return [.command("amixer -c \(card) sset \(name) \(change)"), keep]
  }

  private static var keep: Mend { .advice("permanently: sudo alsactl store") }

  /// Returns the findings on this user's access to a microphone; none without an obstacle. Its nodes usually have the
  /// same obstacle, which is reported once. A wrong mode is reported for each node.
  static func access(to node: SoundNode) -> [Finding] {
    let found = node.paths.compactMap { NodeAccess(path: $0).finding(usual: "audio") }
    return found.filter { $0.mends == found.first?.mends }.prefix(1) + found.filter { $0.mends != found.first?.mends }
  }

  /// Returns the finding where the device cannot be opened or fails.
  ///
  /// - Parameters:
  ///   - device: the device's name.
  ///   - node: the device's node; nil for a device that is no card's.
  ///   - stream: the process of the running stream.
  ///   - status: the command that shows that stream's status.
  package static func finding(
    _ error: SoundError, device: String, node: SoundNode?, stream: Int32? = nil, status: String = "nightjar ctl status"
  ) -> Finding {
    let list = Mend.command("nightjar devices")
    let dmesg = Mend.command("sudo dmesg | tail -n 20")
    switch error {
    case .name, .noDevice:
      return Finding(
        .microphoneMissing, "there is no microphone \(device): viewers hear silence until it appears",
        mends: [.advice("plug it in, or name another"), list])
    case .noPermission:
      return node.flatMap { access(to: $0).first }
        ?? Finding(
          .microphoneMode, "\(device): permission denied",
          mends: [.command("ls -l \(ShellWord.quoted(node?.path ?? "/dev/snd"))")])
    case .busy:
      let holders = node.map { DeviceHolder.holders(ofDeviceAt: $0.path) } ?? []
      return busy(device, path: node?.path, holders: holders, stream: stream, status: status)
    case .format:
      return Finding(.microphoneFormat, error.description, mends: [list, .advice("or name another microphone")])
    case .disconnected, .stalled, .hung, .overruns, .refused:
      return Finding(
        .microphoneUnusable, error.reason,
        mends: [.advice("unplug the microphone and plug it in again"), dmesg])
    }
  }

  /// Returns the finding where another program has the device.
  ///
  /// - Parameters:
  ///   - device: the device's name.
  ///   - path: the path of the device's node; nil for a device that is no card's.
  ///   - holders: the processes that have the node open, as far as this user may know.
  ///   - stream: the process of the running stream.
  ///   - status: the command that shows that stream's status.
  package static func busy(
    _ device: String, path: String?, holders: [DeviceHolder], stream: Int32?, status: String
  ) -> Finding {
    let others = holders.filter { $0.processID != getpid() }
    let other = Mend.advice("or name another microphone: nightjar devices")
    if others.contains(where: { $0.processID == stream }) {
      return Finding(
        .microphoneBusy, "\(device) is in use by the running stream, for a camera of another name or source",
        mends: [.command(status), other])
    }
    if others.isEmpty, !holders.isEmpty {
      return Finding(
        .microphoneBusy, "\(device) is the microphone of another camera of this configuration too",
        mends: [.advice("audio = \"none\" for one of them"), other])
    }
    guard !others.isEmpty else {
      return Finding(
        .microphoneBusy, "\(device) is in use by a program of another user",
        mends: [.command("sudo fuser -v \(path.map(ShellWord.quoted) ?? "/dev/snd/*")"), other])
    }
    return Finding(
      .microphoneBusy, "\(device) is in use by \(others.map(\.description).joined(separator: ", "))",
      mends: ends(of: others) + [other])
  }

  /// Returns the remedies that make these programs give a microphone back.
  private static func ends(of holders: [DeviceHolder]) -> [Mend] {
    let servers = holders.filter(\.isSoundServer)
    let processes = holders.filter { !$0.isSoundServer }.map { "\($0.processID)" }
    var mends: [Mend] = processes.isEmpty ? [] : [.command("kill \(processes.joined(separator: " "))")]
    if let server = servers.first {
      mends.append(
        .advice("close the program that records through \(server.name), or record through it too: audio = \"default\""))
    }
    return mends
  }
}

extension DeviceHolder {
  /// `true` for a program that records on behalf of others. systemd starts it again if it is killed.
  fileprivate var isSoundServer: Bool { ["pipewire", "pipewire-pulse", "pulseaudio", "wireplumber"].contains(name) }
}

extension RecordingControl {
  /// The name and the number as messages show them.
  fileprivate var label: String { "'\(name)'" + (index == 0 ? "" : " \(index)") }

  /// `true` if `amixer` and a shell take the name as it stands, in quotes.
  fileprivate var hasPlainName: Bool {
    !name.isEmpty && !name.hasPrefix("-") && !name.hasPrefix(" ")
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"):
          true
        default: " _-/+.()".utf8.contains(byte)
        }
      }
  }
}
