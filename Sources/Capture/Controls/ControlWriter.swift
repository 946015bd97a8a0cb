/// Sets several controls in an order that drivers accept.
package struct ControlWriter {
  let device: any CameraControlDevice

  /// Creates a writer to `device`.
  package init(device: any CameraControlDevice) {
    self.device = device
  }

  /// A control with its requested value.
  package struct Target {
    package let control: CameraControl
    let value: Int64
  }

  /// Sets all targets: automatics off, then their dependents, then automatics on. Returns the targets that failed.
  package func write(_ targets: [Target]) -> [(target: Target, error: CameraControlError)] {
    let ranked = targets.enumerated().sorted { left, right in
      let ranks = [left, right].map {
        AutomaticControl.rank(of: $0.element.control.identifier, value: $0.element.value)
      }
      return (ranks[0], left.offset) < (ranks[1], right.offset)
    }
    let refused = write(inOrder: ranked.map(\.element))
    // An automatic with several manual modes may only now be in the required one.
    let late = refused.filter { if case .inactive = $0.error { true } else { false } }
    guard !late.isEmpty, late.count < ranked.count else { return refused }
    let still = write(inOrder: late.map(\.target))
    return refused.filter { if case .inactive = $0.error { false } else { true } } + still
  }

  private func write(inOrder targets: [Target]) -> [(target: Target, error: CameraControlError)] {
    targets.compactMap { target in
      do throws(CameraControlError) {
        try write(target)
        return nil
      } catch {
        return (target, error)
      }
    }
  }

  private func write(_ target: Target) throws(CameraControlError) {
    let name = target.control.name
    // The control may be active by now, because of the one before.
    guard let control = device.refreshed(target.control) else { throw .absent }
    if control.flags.contains(.readOnly) { throw .readOnly(name: name) }
    if control.flags.contains(.inactive) { throw control.inactivity(among: device.controls()) }
    let errorNumber = device.set(control, to: target.value)
    guard errorNumber == 0 else {
      if control.flags.contains(.grabbed) { throw .grabbed(name: name) }
      throw .refused(name: name, value: control.text(of: target.value), errorNumber: errorNumber)
    }
    guard control.isComparable, let found = device.refreshed(control)?.value, found != target.value else { return }
    throw .altered(name: name, wanted: control.text(of: target.value), found: control.text(of: found))
  }
}
