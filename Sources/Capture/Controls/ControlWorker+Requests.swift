import Platform

/// The requests of `nightjar ctl` and the page, with their answers.
extension ControlWorker {
  mutating func answer(
    _ reply: CameraControls.Reply, _ body: (inout ControlWorker) throws(CameraControlError) -> Void
  ) {
    // A sender that was told that the driver does not answer must not see the request done later.
    guard !reply.isGiven else { return }
    do throws(CameraControlError) {
      guard device != nil else { throw .absent }
      try body(&self)
      publish()
      guard let device else { throw .absent }
      let controls = device.controls()
      guard !controls.isEmpty else { throw .none }
      let origins = Dictionary(
        settings(controls).settings.map { ($0.target.control.identifier, $0.layer.rawValue) }, uniquingKeysWith: { $1 })
      reply.give(.success(CameraControls.entries(controls) { origins[$0.identifier] }))
    } catch {
      reply.give(.failure(error))
    }
  }

  mutating func change(_ values: [(name: String, value: String?)]) throws(CameraControlError) {
    guard let device else { throw .absent }
    let controls = device.controls()
    guard !controls.isEmpty else { throw .none }
    var targets: [ControlWriter.Target] = []
    var names: Set<String> = []
    var resets: Set<String> = []
    let rest = settings(controls, withChanges: false).settings
    for (name, text) in values {
      guard names.insert(name).inserted else { throw .twice(name: name) }
      if text == nil { resets.insert(name) }
      let found = controls.first { $0.name == name }
      // A requested value can be withdrawn even if this camera lacks the control, or does not let it be set.
      if text == nil, changes[name] != nil, found?.flags.contains(.readOnly) ?? true { continue }
      let control = try controls.named(name)
      guard !control.flags.contains(.readOnly) else { throw .readOnly(name: name) }
      if let text {
        targets.append(.init(control: control, value: try control.value(text)))
      } else if control.kind != .button {
        let setting = rest.first { $0.target.control.identifier == control.identifier }
        targets.append(.init(control: control, value: setting?.target.value ?? control.defaultValue))
      }
    }
    for target in targets where target.control.flags.contains(.inactive) && !resets.contains(target.control.name) {
      // An inactive control is accepted if the same request turns off its automatic.
      let obstacle = AutomaticControl.obstacle(to: target.control, among: controls)
      let isCleared = targets.contains { other in
        other.control.identifier == obstacle?.automatic.identifier && obstacle?.manual.contains(other.value) == true
      }
      if !isCleared { throw target.control.inactivity(among: controls) }
    }
    for name in resets { changes[name] = nil }
    let refused = ControlWriter(device: device).write(targets).filter { target, error in
      // A control that an automatic sets needs no reset.
      if resets.contains(target.control.name), case .inactive = error { false } else { true }
    }
    for (target, error) in refused where resets.contains(target.control.name) && error.isOfAbsence {
      pending[target.control.identifier] = target.value
    }
    for target in targets where !resets.contains(target.control.name) && target.control.kind != .button {
      guard !refused.contains(where: { $0.target.control.identifier == target.control.identifier }) else { continue }
      changes[target.control.name] = Change(
        identifier: target.control.identifier, value: target.value, defaultValue: target.control.defaultValue)
    }
    settle()
    lockAgain()
    if let first = refused.first { throw first.error }
  }
}
