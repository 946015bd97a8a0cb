import CLinux
package import Platform

/// Waits until the camera's automatic values are stable, and fixes them.
package struct SensorLock {
  /// The state of a camera's lock.
  package enum Phase: String {
    case off
    /// The lock waits for exposure and similar values to be stable.
    case settling
    case locked
  }

  /// The progress of the lock.
  package private(set) var phase = Phase.off
  /// The fixed values, by the controls' numbers; they are set again after a replug.
  private(set) var fixed: [UInt32: Int64] = [:]
  /// The earlier values of the automatics.
  package private(set) var before: [UInt32: Int64] = [:]
  /// The values at the start of stability, the controls that were seen to change, and the time since when all are
  /// stable.
  private var values: [UInt32: Int64] = [:]
  private var moving: Set<UInt32> = []
  private var stillSince: Instant?
  /// The number of checks since then that found new pictures, and the number of pictures at the last check.
  private var checksWithPictures = 0
  private var lastPicture = 0
  private var deadline: Instant?
  private var firstPicture = 0
  /// `true` if automatics may be off because another run has locked them.
  private(set) var mayBeLeft = true

  /// Creates a lock that is off.
  package init() {}

  /// The time from one check to the next.
  static let interval = Duration.milliseconds(100)
  /// The time for which all values must be stable.
  static let stillness = Duration(seconds: 1)
  /// The number of checks within that time that must find new pictures. A camera that pauses changes no value, and the
  /// pictures of a pause that come all at once are those of one check.
  static let leastChecksWithPictures = 5
  /// The longest wait for stability.
  static let patience = Duration(seconds: 10)
  /// The number of pictures that must come first: without pictures nothing settles.
  static let leastPictures = 10

  /// Starts to wait, from picture number `count` on.
  package mutating func begin(after count: Int) {
    phase = .settling
    (values, moving, stillSince, deadline) = ([:], [], nil, nil)
    (firstPicture, lastPicture, checksWithPictures) = (count, count, 0)
  }

  /// Notes that the values another run may have locked were released, and starts to wait again.
  ///
  /// - Parameter controls: the controls before the release. The camera itself has set every value that differs
  ///   afterwards.
  mutating func noteReleased(_ controls: [CameraControl], after count: Int) {
    mayBeLeft = false
    begin(after: count)
    for control in controls { values[control.identifier] = control.value }
  }

  /// Ends the lock. The caller reads the automatics' earlier values from ``before`` first.
  mutating func end() {
    (phase, mayBeLeft) = (.off, false)
    (fixed, before) = ([:], [:])
  }

  /// Notes that the camera has returned: an unfinished wait starts again, and the fixed values stay.
  mutating func restart(after count: Int) {
    if phase == .settling { begin(after: count) }
  }

  /// Returns the automatics to lock that are on, with their dependents.
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

  /// Returns the default values of the automatics that are off, unless a request turns them off or sets their
  /// dependents.
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

  /// Returns `true` if enough pictures have come; without pictures nothing settles.
  package func maySettle(pictures: Int) -> Bool { pictures - firstPicture >= Self.leastPictures }

  /// Returns `true` if it is time to lock: all values are stable while pictures come, or the longest wait is over.
  ///
  /// - Parameters:
  ///   - controls: the controls in their present state.
  ///   - pictures: the number of pictures so far, which was read before `controls`.
  package mutating func isSettled(
    _ controls: [CameraControl], except wanted: Set<UInt32>, pictures: Int, at now: Instant
  ) -> Bool {
    let end = deadline ?? now + Self.patience
    deadline = end
    let hasNewPictures = pictures > lastPicture
    lastPicture = pictures
    var isStill = true
    for control in Self.groups(of: controls, except: wanted).flatMap(\.dependents) {
      guard let value = control.value else { continue }
      guard let former = values[control.identifier] else {
        values[control.identifier] = value
        continue
      }
      guard former != value else { continue }
      moving.insert(control.identifier)
      // A noise of 2 % is as stable as some values get.
      let noise = max(control.step.magnitude, value.magnitude / 50)
      guard value.subtractingReportingOverflow(former).partialValue.magnitude > noise else { continue }
      values[control.identifier] = value
      isStill = false
    }
    if !isStill {
      stillSince = nil
    } else if let since = stillSince {
      if hasNewPictures { checksWithPictures += 1 }
      if now - since >= Self.stillness, checksWithPictures >= Self.leastChecksWithPictures { return true }
    } else {
      (stillSince, checksWithPictures) = (now, 0)
    }
    return now >= end
  }

  /// Returns the settings that keep everything as it is. A value that may be an old setting, and not the camera's own,
  /// is not set: the camera keeps it by itself.
  package mutating func fix(_ controls: [CameraControl], except wanted: Set<UInt32>) -> [ControlWriter.Target] {
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
    // More values may join those fixed already.
    fixed.merge(targets.map { ($0.control.identifier, $0.value) }) { $1 }
    phase = .locked
    return targets
  }
}
