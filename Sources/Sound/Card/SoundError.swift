import Glibc
package import Platform

/// A reason why a sound card cannot be used, or no longer.
package enum SoundError: Failure, Hashable {
  /// The name of the device has a character that no name of a sound card has, or is too long.
  case name(String)
  /// There is no such sound card.
  case noDevice(String)
  /// The user may not open the sound card.
  case noPermission(String)
  /// Another program uses the sound card.
  case busy(String)
  /// The sound card takes no format, rate or channel count that can be converted.
  case format(String, request: String)
  /// The sound card was unplugged.
  case disconnected(String)
  /// The sound card delivered nothing for that many milliseconds.
  case stalled(String, milliseconds: Int)
  /// The sound card's driver has not answered for that many milliseconds.
  case hung(String, milliseconds: Int)
  /// The sound card lost samples at each attempt to read them.
  case overruns(String, count: Int)
  /// A call of alsa-lib failed.
  case refused(String, call: String, errorNumber: CInt)

  /// One line for the user at the terminal: what happened, where, and the remedy.
  package var description: String { remedy.map { "\(reason). \($0)" } ?? reason }

  /// The failure, and its place.
  package var reason: String {
    switch self {
    case .name(let name):
      "'\(AttributeFile.printable(name))' is not a sound device: choose one that `nightjar devices` lists, such as "
        + "hw:CARD=C920"
    case .noDevice(let name): "there is no sound device \(name)"
    case .noPermission(let name): "no permission to open the sound device \(name)"
    case .busy(let name): "the sound device \(name) is busy"
    case .format(let name, let request): "the sound device \(name) does not support \(request)"
    case .disconnected(let name): "the sound device \(name) was unplugged"
    case .stalled(let name, let milliseconds): "the sound device \(name) delivered nothing for \(milliseconds) ms"
    case .hung(let name, let milliseconds):
      "the driver of the sound device \(name) has not answered for \(milliseconds) ms"
    case .overruns(let name, let count): "the sound device \(name) lost samples \(count) times in a row"
    case .refused(let name, let call, let errorNumber):
      "the sound device \(name): \(call): \(SystemFailure.text(errorNumber))"
    }
  }

  /// Returns `true` if both are the same failure, whatever its figures are.
  func isLike(_ other: SoundError) -> Bool {
    switch (self, other) {
    case (.stalled(let name, _), .stalled(let other, _)), (.overruns(let name, _), .overruns(let other, _)),
      (.hung(let name, _), .hung(let other, _)):
      name == other
    default: self == other
    }
  }

  /// `true` if the device is there, and neither delivers nor fails.
  var isStandstill: Bool {
    switch self {
    case .stalled, .hung: true
    default: false
    }
  }

  /// `true` if the device is not there.
  var isAbsence: Bool {
    switch self {
    case .noDevice, .disconnected: true
    default: false
    }
  }

  /// The action that mends it; nil if ``reason`` has it already.
  private var remedy: String? {
    switch self {
    case .name: nil
    case .noDevice: "List the sound devices: nightjar devices"
    case .noPermission: "Join the group audio, then log in again: sudo usermod -aG audio \"$USER\""
    case .busy: "See who uses it: fuser -v /dev/snd/*"
    case .format(let name, _): "See what it supports: arecord -D \(name) --dump-hw-params -d 1 /dev/null"
    case .disconnected: "Plug it in again"
    case .stalled, .hung: "Unplug it and plug it in again"
    case .overruns: "See what loads the host: top"
    case .refused: "See the kernel's log: sudo dmesg | tail"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind {
    switch self {
    case .name: .usage
    case .noDevice: .noInput
    case .noPermission: .noPermission
    case .busy: .temporary
    case .format, .disconnected, .stalled, .hung, .overruns: .unavailable
    case .refused: .system
    }
  }

  /// The reason why `device` could not be opened, by alsa-lib's negative return code.
  init(opening device: SoundDeviceName, code: CInt) {
    switch -code {
    case ENODEV, ENXIO, ENOENT:
      // alsa-lib does not find a card that this user may not open; and one that was never there gives the code of one
      // that is gone.
      let isClosed = SoundNode.all().named(device)?.isClosed == true
      self = isClosed ? .noPermission(device.text) : .noDevice(device.text)
    default: self.init(device.text, call: "snd_pcm_open", code: code)
    }
  }

  /// The reason for a negative return code of alsa-lib.
  init(_ device: String, call: String, code: CInt) {
    self =
      switch -code {
      case ENOENT, ENXIO: .noDevice(device)
      case ENODEV, EBADFD, ESHUTDOWN: .disconnected(device)
      case EACCES, EPERM: .noPermission(device)
      case EBUSY: .busy(device)
      default: .refused(device, call: call, errorNumber: -code)
      }
  }
}
