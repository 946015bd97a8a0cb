import Glibc
public import Platform

/// A reason why a camera's control does not have the requested value.
public enum CameraControlError: Failure, Hashable {
  /// The camera has no control of that name.
  case unknown(name: String, nearest: String?)
  /// The camera has no controls at all.
  case none
  /// The camera is absent now.
  case absent
  /// The camera's driver does not answer.
  case silent
  /// The control cannot have that value.
  case value(String, of: String, limits: String)
  /// The control cannot be set.
  case readOnly(name: String)
  /// Another control overrides it; with the setting that ends this, if known.
  case inactive(name: String, because: String?, mend: String?)
  /// The control cannot be set while the camera streams.
  case grabbed(name: String)
  /// The driver refuses.
  case refused(name: String, value: String, errorNumber: CInt)
  /// The driver accepted the value and changed it.
  case altered(name: String, wanted: String, found: String)
  /// The control is given twice.
  case twice(name: String)
  /// The control rotates or mirrors the picture, which has its own options.
  case turning(name: String)

  /// Returns the error for a missing control `name`, with the likely meant one of `names`.
  public static func unknown(name: String, among names: [String]) -> CameraControlError {
    func letters(_ name: String) -> [UInt8] { Array(name.utf8.prefix(EditDistance.lettersLimit)) }
    let meant = EditDistance.meant(by: letters(name), among: names, word: letters)
    return names.isEmpty ? .none : .unknown(name: String(name.prefix(64)), nearest: meant)
  }

  /// `true` if the error only says that the camera is gone.
  var isOfAbsence: Bool {
    switch self {
    case .absent, .refused(_, _, errorNumber: ENODEV): true
    default: false
    }
  }

  /// One line for the user at the terminal.
  public var description: String {
    switch self {
    case .unknown(let name, let nearest):
      "the camera has no control '\(name)'; "
        + (nearest.map { "the nearest is \($0)" } ?? "nightjar devices --controls lists its controls")
    case .none: "this camera has no controls, or was just unplugged"
    case .absent: "the camera is missing: plug it in"
    case .silent: "the camera's driver does not answer: unplug the camera and plug it in again"
    case .value(let value, let name, let limits): "\(name) cannot be '\(value)': choose \(limits)"
    case .readOnly(let name): "\(name) cannot be set: it is read-only"
    case .inactive(let name, let because, let mend):
      "\(name) is inactive\(because.map { " while \($0)" } ?? " now")"
        + (mend.map { ": set \($0) first, or too" } ?? "")
    case .grabbed(let name): "\(name) cannot be set while the camera streams: its driver has locked it"
    case .refused(let name, let value, let errorNumber):
      "the driver refuses \(name)=\(value): \(SystemFailure.text(errorNumber))"
    case .altered(let name, let wanted, let found): "the driver changed \(name)=\(wanted) to \(found)"
    case .twice(let name): "\(name) is given twice"
    case .turning(let name):
      "\(name) cannot be set as a control: the options orientation and mirror rotate the picture"
    }
  }

  /// The kind of the failure.
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
