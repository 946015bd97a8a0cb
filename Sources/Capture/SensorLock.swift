import CLinux
import Media

/// Waits until what a camera sets by itself holds still, and fixes it there.
struct SensorLock {
  /// How it is with a camera's lock.
  enum Phase: String {
    case off
    /// It is waited for exposure and the like to hold still.
    case settling
    case locked
  }

  private(set) var phase = Phase.off
  /// What was fixed, by the controls' numbers; to be set again after a replug.
  private(set) var fixed: [UInt32: Int64] = [:]
  /// What the automatics were before.
  private(set) var before: [UInt32: Int64] = [:]
  /// The values when they began to hold still, those that were seen to change, and since when all hold still.
  private var values: [UInt32: Int64] = [:]
  private var moving: Set<UInt32> = []
  private var stillSince: MediaTime?
  private var deadline: MediaTime?
  private var firstPicture = 0
  /// Whether automatics that are off may be so because another run has locked them.
  private(set) var mayBeLeft = true

  /// From one look to the next.
  static let interval = MediaTime(nanoseconds: 100_000_000)
  /// So long all have to hold still.
  static let stillness = MediaTime(seconds: 1)
  /// So long that is waited for.
  static let patience = MediaTime(seconds: 10)
  /// So many pictures have to come first: without any, nothing settles.
  static let leastPictures = 10

  /// Begins to wait, from picture number `count` on.
  mutating func begin(after count: Int) {
    phase = .settling
    (values, moving, stillSince, deadline) = ([:], [], nil, nil)
    firstPicture = count
  }

  /// What another run may have left locked is released; it is waited for as from the beginning.
  ///
  /// - Parameter controls: as they were before: what is otherwise afterwards, the camera itself has set.
  mutating func noteReleased(_ controls: [CameraControl], after count: Int) {
    mayBeLeft = false
    begin(after: count)
    for control in controls { values[control.identifier] = control.value }
  }

  /// Ends it; what the automatics are to be again is in ``before``.
  mutating func end() {
    (phase, mayBeLeft) = (.off, false)
    (fixed, before) = ([:], [:])
  }

  /// The camera has come back: what had not settled begins anew, and what was fixed stays to be set.
  mutating func restart(after count: Int) {
    if phase == .settling { begin(after: count) }
  }

  /// The automatics that are on, and what they set, of those that are to be locked.
  static func groups(
    of controls: [CameraControl], except wanted: Set<UInt32>
  ) -> [(automatic: CameraControl, manual: Int64, dependents: [CameraControl])] {
    AutomaticControl.all.compactMap { row in
      guard row.belongsToSensorLock, !wanted.contains(row.identifier),
        let automatic = controls.first(where: { $0.identifier == row.identifier }), let value = automatic.value,
        !automatic.flags.contains(.readOnly), !row.manual.contains(value), let manual = row.manualValue(of: automatic)
      else { return nil }
      let dependents = controls.filter {
        row.dependents.contains($0.identifier) && !wanted.contains($0.identifier) && !$0.flags.contains(.readOnly)
      }
      return (automatic, manual, dependents)
    }
  }

  /// What the automatics that are off usually are, where nobody wants them off, nor what they set otherwise.
  static func released(_ controls: [CameraControl], except wanted: Set<UInt32>) -> [ControlWriter.Target] {
    let automatics = AutomaticControl.all.compactMap { row -> ControlWriter.Target? in
      guard row.belongsToSensorLock, !wanted.contains(row.identifier), wanted.isDisjoint(with: row.dependents),
        let automatic = controls.first(where: { $0.identifier == row.identifier }), let value = automatic.value,
        !automatic.flags.contains(.readOnly), row.manual.contains(value), !row.manual.contains(automatic.defaultValue)
      else { return nil }
      return .init(control: automatic, value: automatic.defaultValue)
    }
    let rates = controls.filter {
      $0.identifier == nightjar_V4L2_CID_EXPOSURE_AUTO_PRIORITY && !wanted.contains($0.identifier) && $0.value == 0
        && $0.defaultValue != 0 && !$0.flags.contains(.readOnly)
    }
    return automatics + rates.map { .init(control: $0, value: $0.defaultValue) }
  }

  /// Whether pictures have come, without which nothing settles.
  func maySettle(pictures: Int) -> Bool { pictures - firstPicture >= Self.leastPictures }

  /// Whether it is time to lock: all hold still, or patience is at its end.
  ///
  /// - Parameter controls: as they are now.
  mutating func isSettled(_ controls: [CameraControl], except wanted: Set<UInt32>, at now: MediaTime) -> Bool {
    let end = deadline ?? now + Self.patience
    deadline = end
    var isStill = true
    for control in Self.groups(of: controls, except: wanted).flatMap(\.dependents) {
      guard let value = control.value else { continue }
      guard let former = values[control.identifier] else {
        values[control.identifier] = value
        continue
      }
      guard former != value else { continue }
      moving.insert(control.identifier)
      // A noise of 2 % is as still as some get.
      let noise = max(control.step.magnitude, value.magnitude / 50)
      guard value.subtractingReportingOverflow(former).partialValue.magnitude > noise else { continue }
      values[control.identifier] = value
      isStill = false
    }
    let since = isStill ? stillSince ?? now : nil
    stillSince = since
    return since.map { now - $0 >= Self.stillness } ?? false || now >= end
  }

  /// What to set, so that everything stays as it is. Values of which it is not certain that they are the camera's own, and
  /// not what was set once, are left to the camera, which keeps what it has.
  mutating func fix(_ controls: [CameraControl], except wanted: Set<UInt32>) -> [ControlWriter.Target] {
    var targets: [ControlWriter.Target] = []
    for group in Self.groups(of: controls, except: wanted) {
      before[group.automatic.identifier] = before[group.automatic.identifier] ?? group.automatic.value
      targets.append(.init(control: group.automatic, value: group.manual))
      for control in group.dependents {
        guard let value = control.value, control.permits(value),
          control.flags.contains(.volatile) || moving.contains(control.identifier)
        else { continue }
        targets.append(.init(control: control, value: value))
      }
    }
    let isRateKept = wanted.contains(nightjar_V4L2_CID_EXPOSURE_AUTO_PRIORITY)
    if !isRateKept,
      let rate = controls.first(where: { $0.identifier == nightjar_V4L2_CID_EXPOSURE_AUTO_PRIORITY }), rate.value != 0,
      !rate.flags.contains(.readOnly)
    {
      before[rate.identifier] = rate.value
      targets.append(.init(control: rate, value: 0))
    }
    // More may come to what is fixed already.
    fixed.merge(targets.map { ($0.control.identifier, $0.value) }) { $1 }
    phase = .locked
    return targets
  }
}
