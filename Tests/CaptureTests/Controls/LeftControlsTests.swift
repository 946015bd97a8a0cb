import Capture
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// Controls that another run has left in the camera, and those that wait for the camera: the worker's steps, made by
/// the tests.
@Suite struct LeftControlsTests {
  private static let night = NightProfile(
    .time(from: 20 * 60, to: 6 * 60), values: [ControlAssignment(name: "brightness", value: "40")])
  private static let (midnight, noon) = (0, 12 * 60)

  private func core(_ profile: ControlProfile) throws -> CameraControls.Core { try CameraControls.Core(profile) }

  private func attach(_ device: ScriptedControls?, to core: CameraControls.Core, _ worker: inout ControlWorker) {
    core.device.withLock { $0.device = device }
    if device != nil { worker.follow(.attached) }
  }

  private func set(_ name: String, _ value: Int64, in device: ScriptedControls) throws {
    let control = try #require(device.controls().first { $0.name == name })
    #expect(device.set(control, to: value) == 0)
  }

  private func change(_ name: String, _ value: String?, _ worker: inout ControlWorker) {
    worker.follow(.change([(name: name, value: value)], .init()))
  }

  /// Looks, with pictures, until the sensor is locked.
  private func lock(_ core: CameraControls.Core, _ worker: inout ControlWorker, from begin: Double = 0) throws {
    try worker.lookAtPictures(core, from: begin, minute: Self.noon)
  }

  @Test func `a run that begins at night does not take what another has left for the day's`() throws {
    let device = ScriptedControls()
    try set("brightness", 40, in: device)
    let core = try core(ControlProfile(night: Self.night))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.midnight)
    attach(device, to: core, &worker)
    #expect(device.value("brightness") == 40)
    worker.look(at: .zero, minute: Self.noon)
    #expect(device.value("brightness") == 0)
    // What somebody else has set by day is the day's.
    try set("brightness", 11, in: device)
    worker.look(at: .zero, minute: Self.midnight)
    #expect(device.value("brightness") == 40)
    worker.look(at: .zero, minute: Self.noon)
    #expect(device.value("brightness") == 11)
  }

  @Test func `a run that begins by day ends the night that another has left`() throws {
    let device = ScriptedControls()
    try set("brightness", 40, in: device)
    let core = try core(ControlProfile(night: Self.night))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    attach(device, to: core, &worker)
    #expect(device.value("brightness") == 0)
    // Only then: later it is somebody's will.
    try set("brightness", 40, in: device)
    attach(device, to: core, &worker)
    #expect(device.value("brightness") == 40)
  }

  @Test func `day that comes while the camera is away is set when it is back`() throws {
    let device = ScriptedControls()
    try set("brightness", 11, in: device)
    let core = try core(ControlProfile(night: Self.night))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    attach(device, to: core, &worker)
    worker.look(at: .zero, minute: Self.midnight)
    #expect(device.value("brightness") == 40)
    attach(nil, to: core, &worker)
    worker.look(at: .zero, minute: Self.noon)
    attach(device, to: core, &worker)
    #expect(device.value("brightness") == 11)
    // And what the driver refuses of it is told.
    worker.look(at: .zero, minute: Self.midnight)
    attach(nil, to: core, &worker)
    worker.look(at: .zero, minute: Self.noon)
    device.state.withLock { $0.refusals = ["brightness": 5] }
    attach(device, to: core, &worker)
    let refusal = CameraControlError.refused(name: "brightness", value: "11", errorNumber: 5)
    let warning = CameraEvent.warning("controls: \(refusal)")
    #expect(core.events.take().count { $0 == warning } == 1 && warning.isWarning)
    #expect(refusal.description == "the driver refuses brightness=11: Input/output error")
  }

  @Test func `a reload while the camera is away undoes what ctl has set and unlocked`() throws {
    let device = ScriptedControls()
    let core = try core(ControlProfile(locksSensor: true))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    attach(device, to: core, &worker)
    change("brightness", "33", &worker)
    worker.follow(.lock(false, .init()))
    #expect(device.value("brightness") == 33)
    attach(nil, to: core, &worker)
    worker.follow(.follow(ControlProfile(locksSensor: true)))
    attach(device, to: core, &worker)
    worker.look(at: .zero, minute: Self.noon)
    #expect(device.value("brightness") == 0)
    #expect(core.status.withLock { $0.sensorLock } == "settling")
  }

  @Test func `values that a former run has locked settle again, and unlocking unlocks them`() throws {
    let device = ScriptedControls()
    for (name, value) in [("auto_exposure", 1), ("exposure_time_absolute", 900), ("white_balance_automatic", 0)] {
      try set(name, Int64(value), in: device)
    }
    let core = try core(ControlProfile(values: [.init(name: "white_balance_temperature", value: "3000")]))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    attach(device, to: core, &worker)
    // Locked before, unlocked by this one. White balance is by hand because somebody wants its temperature.
    worker.follow(.lock(false, .init()))
    #expect(device.value("auto_exposure") == 3 && device.value("white_balance_automatic") == 0)

    try set("auto_exposure", 1, in: device)
    let other = try self.core(ControlProfile(locksSensor: true))
    var next = ControlWorker(other)
    next.begin(minute: Self.noon)
    attach(device, to: other, &next)
    try lock(other, &next)
    #expect(device.value("auto_exposure") == 1 && device.value("exposure_time_absolute") == 250)
    let words = other.events.take().map { "\($0)" }
    #expect(words.contains { $0.contains("exposure_time_absolute=250") }, "\(words)")
    next.follow(.lock(false, .init()))
    #expect(device.value("auto_exposure") == 3 && device.value("white_balance_automatic") == 1)
  }

  @Test func `controls that were locked at night are locked again by day`() throws {
    let device = ScriptedControls()
    let values = [
      ControlAssignment(name: "auto_exposure", value: "1"),
      ControlAssignment(name: "exposure_time_absolute", value: "2000"),
    ]
    // Night at noon, when ``lock`` looks.
    let profile = ControlProfile(locksSensor: true, night: NightProfile(.time(from: 600, to: 900), values: values))
    let core = try core(profile)
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    attach(device, to: core, &worker)
    try lock(core, &worker)
    worker.follow(.list(.init()))
    #expect(core.status.withLock { $0.sensorLock } == "locked")
    #expect(device.value("exposure_time_absolute") == 2000 && device.value("white_balance_automatic") == 0)
    worker.look(at: Instant(seconds: 100), minute: Self.midnight)
    #expect(device.value("auto_exposure") == 3)
    #expect(core.status.withLock { $0.sensorLock } == "settling")
    // What was locked already stays so meanwhile.
    #expect(device.value("white_balance_automatic") == 0)
  }

  @Test func `a camera that goes while its sensor settles is not locked with nothing`() throws {
    let device = ScriptedControls()
    let core = try core(ControlProfile(locksSensor: true))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    attach(device, to: core, &worker)
    worker.look(at: .zero, minute: Self.noon)
    device.isGone.withLock { $0 = true }
    try lock(core, &worker)
    worker.follow(.list(.init()))
    #expect(core.status.withLock { $0.sensorLock } != "locked" && core.events.take().isEmpty)
    device.isGone.withLock { $0 = false }
    try lock(core, &worker, from: 20)
    worker.follow(.list(.init()))
    #expect(core.status.withLock { $0.sensorLock } == "locked")
  }

  @Test func `a request is ignored after its answer, and the flips are no controls`() async throws {
    let device = ScriptedControls()
    let core = try core(ControlProfile())
    var worker = ControlWorker(core)
    attach(device, to: core, &worker)
    let late = CameraControls.Reply()
    late.give(.failure(CameraControlError.silent))
    worker.follow(.change([(name: "brightness", value: "9")], late))
    #expect(device.value("brightness") == 0)
    let controls = try CameraControls(ControlProfile())
    controls.attach(device)
    for name in ["horizontal_flip", "vertical_flip", "rotate"] {
      await #expect(throws: CameraControlError.turning(name: name)) { _ = try await controls.change([(name, "1")]) }
    }
  }
}
