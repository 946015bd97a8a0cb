import CLinux
import Media
package import Platform
import Synchronization

/// Does the work of ``CameraControls`` on its thread. An absent camera is no error: the values are set when it comes.
package struct ControlWorker {
  private let core: CameraControls.Core
  private var profile: ControlProfile
  /// The values of ``CameraControls/change(_:)``, by name.
  var changes: [String: Change] = [:]
  private var lock = SensorLock()
  private var night: NightDetector?
  /// The values of the night's controls by day, by number.
  private var beforeNight: [UInt32: Int64] = [:]
  /// `true` if a camera was present by day. Before that its values may be left from another run's night.
  private var hasSeenDay = false
  /// The values to restore, by number, once a camera with that control is present.
  var pending: [UInt32: Int64] = [:]
  /// The present complaints: a driver's refusal is reported once.
  private var complaints: [String] = []
  /// All reported texts: a repeated one is not reported again.
  private var told: Set<String> = []
  private var hasEnded = false
  /// The bitrate of the encoder in the camera; nil if none was requested.
  private var codedBitrate: Int?

  struct Change {
    let identifier: UInt32
    let value: Int64
    /// The value to restore when the change is withdrawn.
    let defaultValue: Int64
  }

  private static let nightInterval = Duration(seconds: 1)

  package init(_ core: CameraControls.Core) {
    self.core = core
    profile = core.profile
    night = profile.night.map { NightDetector($0.condition) }
  }

  var device: (any CameraControlDevice)? { core.device.withLock { $0.device } }

  mutating func run() {
    begin()
    while !hasEnded {
      for order in core.take(until: deadline) { follow(order) }
      look(at: .now())
      publish()
    }
  }

  private var deadline: Instant? {
    if lock.phase == .settling { return .now() + SensorLock.interval }
    return night == nil ? nil : .now() + Self.nightInterval
  }

  package mutating func begin(minute: Int = NightDetector.minuteOfDay()) {
    measure()
    // Before the first camera is set, so that it starts with the right values.
    _ = night?.note(minute: minute, luma: nil, at: .now())
    if profile.locksSensor { lock.begin(after: core.pictures.pictures) }
  }

  package mutating func follow(_ order: CameraControls.Core.Order) {
    switch order {
    case .attached:
      lock.restart(after: core.pictures.pictures)
      if night?.isNight == true { noteDay() }
      apply(pressing: Set(profile.all.map(\.name)).union(changes.keys))
      if let codedBitrate { code(.bitrate(codedBitrate)) }
    case .code(let request): code(request)
    case .follow(let profile): follow(profile)
    case .list(let reply): answer(reply) { _ in }
    case .change(let values, let reply):
      answer(reply) { worker throws(CameraControlError) in try worker.change(values) }
    case .lock(let isLocked, let reply):
      answer(reply) { worker in
        guard isLocked else { return worker.unlock() }
        if worker.lock.phase == .off { worker.lock.begin(after: worker.core.pictures.pictures) }
      }
    case .end: hasEnded = true
    }
  }

  /// Hands a request to the encoder in the camera, if the camera is set up for its own H.264.
  private mutating func code(_ request: PassThrough.Request) {
    if case .bitrate(let bitrate) = request { codedBitrate = bitrate }
    guard let device, device.codesPictures else { return }
    let text: String
    switch request {
    case .keyFrame:
      guard !device.requestKeyFrame() else { return }
      text = "the camera makes no key frame on request: a viewer that joins waits for the next one"
    case .bitrate:
      guard let codedBitrate, !device.setCodedBitrate(codedBitrate) else { return }
      text = "the camera takes no bitrate: its own H.264 has the camera's bitrate"
    }
    if told.insert(text).inserted { core.events.add(.warning(text)) }
  }

  /// Checks whether night has come and whether the sensor has settled.
  package mutating func look(at now: Instant, minute: Int = NightDetector.minuteOfDay()) {
    let hadDecided = night?.hasDecided
    if night?.note(minute: minute, luma: core.pictures.brightness(at: now), at: now) == true {
      turnNight()
    } else if night?.hasDecided != hadDecided {
      apply()
    }
    guard lock.phase == .settling, let device else { return }
    if lock.mayBeLeft { release(device) }
    let pictures = core.pictures.pictures
    guard lock.maySettle(pictures: pictures) else { return }
    let controls = device.controls()
    // A camera that is just leaving has no controls.
    guard !controls.isEmpty else { return }
    let wanted = explicit(controls)
    guard lock.isSettled(controls, except: wanted, pictures: pictures, at: now) else { return }
    complain(ControlWriter(device: device).write(lock.fix(controls, except: wanted)).map(\.error))
    settle()
    let words = lock.fixed.isEmpty ? "nothing to lock" : text(of: lock.fixed, controls)
    core.events.add(.controls("sensor locked: \(words)"))
  }

  /// Lets the camera set the controls that another run has locked.
  private mutating func release(_ device: any CameraControlDevice) {
    let controls = device.controls()
    guard !controls.isEmpty else { return }
    let targets = SensorLock.released(controls, except: explicit(controls))
    complain(ControlWriter(device: device).write(targets).map(\.error))
    lock.noteReleased(controls, after: core.pictures.pictures)
  }

  /// Locks automatics that are on although the sensor is locked: the night or ctl had turned them on.
  mutating func lockAgain() {
    guard lock.phase == .locked, let controls = device?.controls() else { return }
    if !SensorLock.groups(of: controls, except: explicit(controls)).isEmpty {
      lock.begin(after: core.pictures.pictures)
    }
  }

  // MARK: What is wanted

  /// The source of a value; a later one takes precedence.
  enum Layer: String {
    case configuration
    case lock
    case night
    case ctl
  }

  struct Setting {
    let layer: Layer
    let target: ControlWriter.Target
  }

  /// Returns the requested value of each control, and the errors of those that cannot have it.
  func settings(_ controls: [CameraControl], withChanges: Bool = true) -> (
    settings: [Setting], errors: [CameraControlError]
  ) {
    var found: [UInt32: Setting] = [:]
    var order: [UInt32] = []
    var errors: [CameraControlError] = []
    func add(_ layer: Layer, _ control: CameraControl, _ value: Int64) {
      if found[control.identifier] == nil { order.append(control.identifier) }
      found[control.identifier] = Setting(layer: layer, target: .init(control: control, value: value))
    }
    func add(_ layer: Layer, _ assignments: [ControlAssignment]) {
      for assignment in assignments {
        do throws(CameraControlError) {
          let control = try controls.named(assignment.name)
          add(layer, control, try control.value(assignment.value))
        } catch {
          errors.append(error)
        }
      }
    }
    add(.configuration, profile.values)
    for control in controls { if let value = lock.fixed[control.identifier] { add(.lock, control, value) } }
    if let night, night.isNight { add(.night, profile.night?.values ?? []) }
    for control in controls where withChanges {
      if let change = changes[control.name] { add(.ctl, control, change.value) }
    }
    return (order.compactMap { found[$0] }, errors)
  }

  /// Returns the controls for which a source other than the lock requests a value.
  private func explicit(_ controls: [CameraControl]) -> Set<UInt32> {
    Set(settings(controls).settings.filter { $0.layer != .lock }.map(\.target.control.identifier))
  }

  /// Sets all requested values, and those of `restored` that no source overrides. Without a camera, they are set when
  /// one comes.
  ///
  /// - Parameter actions: the names of action controls that shall be triggered.
  private mutating func apply(restoring restored: [UInt32: Int64] = [:], pressing actions: Set<String> = []) {
    pending.merge(restored) { $1 }
    guard let device else { return }
    let controls = device.controls()
    beginDay(controls)
    let (settings, errors) = settings(controls)
    let wanted = Set(settings.map(\.target.control.identifier))
    let others = controls.compactMap { control -> ControlWriter.Target? in
      guard let value = pending.removeValue(forKey: control.identifier), !wanted.contains(control.identifier)
      else { return nil }
      return .init(control: control, value: value)
    }
    let targets = AutomaticControl.effective(settings.map(\.target)).filter {
      !$0.control.isAction || actions.contains($0.control.name)
    }
    let refused = ControlWriter(device: device).write(others + targets)
    complaints = []
    complain(errors + refused.filter { wanted.contains($0.target.control.identifier) }.map(\.error))
    for (target, error) in refused where !wanted.contains(target.control.identifier) {
      if error.isOfAbsence { pending[target.control.identifier] = target.value } else { tell(error) }
    }
    lockAgain()
    publish()
  }

  /// Sets the requested values that do not apply yet, after other controls changed. An example is a control that an
  /// automatic had set until it was turned off.
  mutating func settle() {
    guard let device else { return }
    let controls = device.controls()
    // A camera that is just leaving has no controls.
    guard !controls.isEmpty else { return }
    let (settings, errors) = settings(controls)
    let targets = AutomaticControl.effective(settings.map(\.target)).filter { target in
      let control = target.control
      return !control.isAction && (control.value != target.value || control.flags.contains(.readOnly))
    }
    complaints = []
    complain(errors + ControlWriter(device: device).write(targets).map(\.error))
  }

  private mutating func complain(_ errors: [CameraControlError]) {
    for error in errors {
      let text = "\(error)"
      if !complaints.contains(text) { complaints.append(text) }
      tell(error)
    }
  }

  /// Reports an error that is no present complaint: a refusal of a restored value concerns no request.
  private mutating func tell(_ error: CameraControlError) {
    let text = "\(error)"
    // The set is bounded by the camera's controls and the possible requests for them.
    if told.insert(text).inserted { core.events.add(.warning("controls: \(text)")) }
  }

  private mutating func follow(_ new: ControlProfile) {
    guard new != profile || !changes.isEmpty || new.locksSensor != (lock.phase != .off) else { return }
    let old = profile
    profile = new
    told = []
    // A control that is no longer requested gets its default value, as by a request to reset it.
    let actions = Set(new.all.filter { !old.all.contains($0) }.map(\.name)).union(changes.keys)
    var restored = Dictionary(changes.values.map { ($0.identifier, $0.defaultValue) }) { $1 }
    changes = [:]
    if new.night != old.night {
      // The day's value to restore is the one from before the first night.
      restored.merge(beforeNight) { $1 }
      pending.merge(restored) { $1 }
      beforeNight = [:]
      night = new.night.map { NightDetector($0.condition) }
      _ = night?.note(minute: NightDetector.minuteOfDay(), luma: nil, at: .now())
      measure()
      if night?.isNight == true { noteDay() }
    }
    if new.locksSensor, lock.phase == .off { lock.begin(after: core.pictures.pictures) }
    if !new.locksSensor, lock.phase != .off {
      restored.merge(lock.before) { first, _ in first }
      lock.end()
    }
    apply(restoring: restored, pressing: actions)
  }

  private mutating func unlock() {
    let before = lock.before
    lock.end()
    let controls = device?.controls() ?? []
    let left = SensorLock.released(controls, except: explicit(controls)).map { ($0.control.identifier, $0.value) }
    apply(restoring: before.merging(left) { first, _ in first })
  }

  // MARK: Night

  /// Measures brightness only if it decides about the night.
  private func measure() {
    let isDecisive = if case .darkness = profile.night?.condition { true } else { false }
    core.pictures.isMeasuring = isDecisive
  }

  /// Returns the night's value of `control`; nil if the night does not set it.
  private func nightValue(of control: CameraControl) -> Int64? {
    // A value that this camera's control cannot have is reported where it is set; it is no value of the night.
    profile.night?.values.first { $0.name == control.name }.flatMap { try? control.value($0.value) }
  }

  /// Notes the day's values of the night's controls, as far as they are not known yet.
  private mutating func noteDay() {
    for control in device?.controls() ?? [] where beforeNight[control.identifier] == nil {
      guard let value = control.value, let nightly = nightValue(of: control) else { continue }
      // A value that was set here, or left by another run, is not the day's.
      let isLeft = changes[control.name] != nil || !hasSeenDay && value == nightly
      beforeNight[control.identifier] =
        pending[control.identifier] ?? lock.before[control.identifier] ?? (isLeft ? control.defaultValue : value)
    }
  }

  /// Handles the first day with a camera: if all night controls still have another run's night values, resets them.
  private mutating func beginDay(_ controls: [CameraControl]) {
    guard !hasSeenDay, !controls.isEmpty, night.map({ $0.hasDecided && !$0.isNight }) ?? true else { return }
    hasSeenDay = true
    let nightly = controls.filter { $0.value != nil && nightValue(of: $0) != nil }
    guard nightly.allSatisfy({ nightValue(of: $0) == $0.value }) else { return }
    for control in nightly where pending[control.identifier] == nil {
      pending[control.identifier] = control.defaultValue
    }
  }

  private mutating func turnNight() {
    guard let night else { return }
    let actions = Set(profile.night?.values.map(\.name) ?? [])
    if night.isNight {
      noteDay()
      core.events.add(.controls("night: nightjar has set its controls"))
      apply(pressing: actions)
    } else {
      let day = beforeNight
      beforeNight = [:]
      core.events.add(.controls("day: nightjar has set the night's controls back"))
      apply(restoring: day, pressing: actions)
    }
  }

  // MARK: What is shown

  func publish() {
    core.status.withLock { status in
      status.sensorLock = lock.phase.rawValue
      status.isNight = night.flatMap { $0.hasDecided ? $0.isNight : nil }
      status.complaints = complaints
    }
  }

  private func text(of values: [UInt32: Int64], _ controls: [CameraControl]) -> String {
    controls.compactMap { control in values[control.identifier].map { "\(control.name)=\($0)" } }
      .joined(separator: ", ")
  }
}
