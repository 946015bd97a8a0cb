import Glibc
public import Media

/// Why a camera's setting is not what was asked for.
public enum CameraControlError: Failure, Hashable {
  /// The camera has no control of that name.
  case unknown(name: String, nearest: String?)
  /// The camera has no controls at all.
  case none
  /// The camera is not there now.
  case absent
  /// Its driver does not answer.
  case silent
  /// The control cannot be that.
  case value(String, of: String, limits: String)
  /// The control cannot be set.
  case readOnly(name: String)
  /// Another control does what it would; with what to set so that it does not, where that is known.
  case inactive(name: String, because: String?, mend: String?)
  /// It cannot be set while the camera streams.
  case grabbed(name: String)
  /// The driver refuses.
  case refused(name: String, value: String, errorNumber: CInt)
  /// The driver took it, and made another value of it.
  case altered(name: String, wanted: String, found: String)
  /// It is given twice.
  case twice(name: String)
  /// It lays the picture, which has options of its own.
  case turning(name: String)

  /// That there is none called `name`, with the one of `names` that was probably meant.
  public static func unknown(name: String, among names: [String]) -> CameraControlError {
    let wanted = Array(name.utf8.prefix(64))
    let nearest = names.map { ($0, EditDistance.between(wanted, Array($0.utf8.prefix(64)))) }.min { $0.1 < $1.1 }
    // Every name has a nearest one; beyond a third of its letters it is another word, and no slip of the pen.
    let meant = nearest.flatMap { $0.1 <= max(1, wanted.count / 3) ? $0.0 : nil }
    return names.isEmpty ? .none : .unknown(name: String(name.prefix(64)), nearest: meant)
  }

  /// Whether it says nothing but that the camera is gone.
  var isOfAbsence: Bool {
    switch self {
    case .absent, .refused(_, _, errorNumber: ENODEV): true
    default: false
    }
  }

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .unknown(let name, let nearest):
      "the camera has no control '\(name)'; "
        + (nearest.map { "the nearest is \($0)" } ?? "nightjar devices --controls lists those that it has")
    case .none: "this camera has no controls, or was unplugged just now"
    case .absent: "the camera is not there now: plug it in"
    case .silent: "the camera's driver does not answer: unplug the camera and plug it in again"
    case .value(let value, let name, let limits): "\(name) cannot be '\(value)': choose \(limits)"
    case .readOnly(let name): "\(name) cannot be set: it is read-only"
    case .inactive(let name, let because, let mend):
      "\(name) is inactive\(because.map { " while \($0)" } ?? " now")"
        + (mend.map { ": set \($0) first, or too" } ?? "")
    case .grabbed(let name): "\(name) cannot be set while the camera streams: its driver has locked it"
    case .refused(let name, let value, let errorNumber):
      "the driver refuses \(name)=\(value): \(SystemFailure.text(errorNumber))"
    case .altered(let name, let wanted, let found): "the driver made \(name)=\(found) of \(wanted)"
    case .twice(let name): "\(name) is given twice"
    case .turning(let name):
      "\(name) is not set as a control: how the picture is laid is said by orientation and mirror"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .unknown: .noInput
    case .value, .readOnly, .inactive, .twice, .turning: .usage
    case .none, .absent: .unavailable
    case .grabbed, .silent: .temporary
    case .refused, .altered: .inputOutput
    }
  }
}
