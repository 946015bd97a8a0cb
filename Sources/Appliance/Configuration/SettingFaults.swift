/// The faults of one configuration, in the order in which they are found.
package struct SettingFaults {
  /// The faults, in the order in which they were found.
  package private(set) var faults: [SettingFault] = []

  /// Creates an empty list.
  package init() {}

  /// Adds a fault.
  package mutating func add(_ fault: SettingFault) { faults.append(fault) }

  /// Adds settings that contradict each other; `reason` names them.
  mutating func add(_ reason: SettingReason) { faults.append(SettingFault(reason: reason)) }

  /// Adds a setting that is wrong in itself, or beside others.
  mutating func add(_ setting: CameraSetting, _ reason: SettingReason) {
    faults.append(SettingFault(subject: setting.rawValue, reason: reason))
  }

  /// Adds a setting that is wrong in itself, or beside others.
  mutating func add(_ setting: ApplianceSetting, _ reason: SettingReason) {
    faults.append(SettingFault(subject: setting.rawValue, reason: reason))
  }
}
