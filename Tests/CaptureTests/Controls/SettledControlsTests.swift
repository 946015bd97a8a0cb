import Capture
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// The consequences of an order or a lock for the controls that it does not name.
@Suite struct SettledControlsTests {
  private static let (midnight, noon) = (0, 12 * 60)
  private static let manual = [
    ControlAssignment(name: "auto_exposure", value: "1"),
    ControlAssignment(name: "exposure_time_absolute", value: "300"),
  ]

  private func attached(_ profile: ControlProfile, to device: ScriptedControls) throws -> CameraControls {
    let controls = try CameraControls(profile)
    controls.attach(device)
    return controls
  }

  /// The exposure is where the automatic has it.
  private func driftsAway(_ device: ScriptedControls, _ controls: CameraControls) async throws {
    for _ in 0..<100 where device.value("exposure_time_absolute") != 250 { _ = try await controls.list() }
    #expect(device.value("exposure_time_absolute") == 250)
  }

  @Test func `a value that an automatic control has overwritten can be reset`() async throws {
    let device = ScriptedControls()
    let controls = try attached(ControlProfile(), to: device)
    for names in [["exposure_time_absolute"], ["exposure_time_absolute", "auto_exposure"]] {
      _ = try await controls.change([("auto_exposure", "1"), ("exposure_time_absolute", "300")])
      _ = try await controls.change([("auto_exposure", "3")])
      let entries = try await controls.change(names.map { ($0, nil) })
      #expect(entries.filter { names.contains($0.control.name) }.allSatisfy { $0.origin == nil })
    }
    // And both at once, where the exposure is inactive only before.
    let wanted = try attached(ControlProfile(values: Self.manual), to: device)
    _ = try await wanted.change([("auto_exposure", "3"), ("exposure_time_absolute", "77")])
    _ = try await wanted.change([("exposure_time_absolute", nil), ("auto_exposure", nil)])
    #expect(device.value("auto_exposure") == 1 && device.value("exposure_time_absolute") == 300)
    #expect(wanted.status.complaints.isEmpty)
  }

  @Test func `a refused reset is reported, and the requested value is forgotten`() async throws {
    let device = ScriptedControls()
    let controls = try attached(ControlProfile(), to: device)
    _ = try await controls.change([("brightness", "20")])
    device.state.withLock { $0.refusals = ["brightness": 5] }
    await #expect(throws: CameraControlError.self) { _ = try await controls.change([("brightness", nil)]) }
    #expect(try await controls.list().allSatisfy { $0.origin == nil })
  }

  @Test func `a button is pressed when the camera comes, and by an order, and by nothing else`() async throws {
    let device = ScriptedControls()
    let button = ControlAssignment(name: "white_balance_once", value: "1")
    let core = try CameraControls.Core(
      ControlProfile(
        values: [button],
        night: NightProfile(
          .time(from: 20 * 60, to: 6 * 60), values: [ControlAssignment(name: "brightness", value: "40")])))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    core.device.withLock { $0.device = device }
    func presses() -> Int { device.state.withLock { $0.writes.count { $0 == "white_balance_once=1" } } }
    worker.follow(.attached)
    #expect(presses() == 1)
    worker.look(at: .zero, minute: Self.midnight)
    worker.look(at: .zero, minute: Self.noon)
    worker.follow(.lock(true, .init()))
    worker.follow(.lock(false, .init()))
    worker.follow(.change([(name: "brightness", value: "3")], .init()))
    worker.follow(.change([(name: "white_balance_once", value: nil)], .init()))
    worker.follow(.follow(ControlProfile(values: [button], locksSensor: true)))
    #expect(presses() == 1)
    worker.follow(.change([(name: "white_balance_once", value: "1")], .init()))
    #expect(presses() == 2)
    worker.follow(.attached)
    #expect(presses() == 3)
  }

  @Test func `a control that a request makes settable gets its configured value`() async throws {
    let device = ScriptedControls()
    let controls = try attached(ControlProfile(values: Self.manual), to: device)
    _ = try await controls.change([("auto_exposure", "3")])
    try await driftsAway(device, controls)
    _ = try await controls.change([("auto_exposure", nil)])
    #expect(device.value("auto_exposure") == 1 && device.value("exposure_time_absolute") == 300)
    // What is as it is wanted is not set again.
    let writes = device.state.withLock { $0.writes.count }
    _ = try await controls.change([("brightness", "5")])
    #expect(device.state.withLock { $0.writes.count } == writes + 1)
  }

  @Test func `a complaint ends after its advice is followed`() async throws {
    let device = ScriptedControls()
    let controls = try attached(ControlProfile(values: [Self.manual[1]]), to: device)
    _ = try await controls.list()
    #expect(controls.status.complaints.count == 1, "\(controls.status.complaints)")
    _ = try await controls.change([("auto_exposure", "1")])
    #expect(device.value("exposure_time_absolute") == 300)
    #expect(controls.status.complaints.isEmpty, "\(controls.status.complaints)")
  }

  @Test func `a lock has what is wanted otherwise set at once, and gets back what ctl had let go`() throws {
    for (profile, locked) in [
      (ControlProfile(locksSensor: true), Int64(250)),
      (ControlProfile(values: [Self.manual[1]], locksSensor: true), 300),
    ] {
      let device = ScriptedControls()
      let core = try CameraControls.Core(profile)
      var worker = ControlWorker(core)
      worker.begin(minute: Self.noon)
      core.device.withLock { $0.device = device }
      worker.follow(.attached)
      try worker.lookAtPictures(core, minute: Self.noon)
      worker.follow(.list(.init()))
      let status = core.status.withLock { $0 }
      #expect(status.sensorLock == "locked" && status.complaints.isEmpty, "\(status)")
      #expect(device.value("exposure_time_absolute") == locked)
      device.state.withLock { $0.target = 900 }
      worker.follow(.change([(name: "auto_exposure", value: "3")], .init()))
      for _ in 0..<50 { worker.follow(.list(.init())) }
      #expect(device.value("exposure_time_absolute") == 900)
      worker.follow(.change([(name: "auto_exposure", value: nil)], .init()))
      #expect(device.value("auto_exposure") == 1 && device.value("exposure_time_absolute") == locked)
    }
  }

  @Test func `a lock that the driver refuses is no reason to lock for ever`() throws {
    let device = ScriptedControls()
    device.state.withLock { $0.refusals = ["auto_exposure": 5] }
    let core = try CameraControls.Core(ControlProfile(locksSensor: true))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.noon)
    core.device.withLock { $0.device = device }
    worker.follow(.attached)
    for begin in [0.0, 10, 20] { try worker.lookAtPictures(core, from: begin, minute: Self.noon) }
    let told = core.events.take().filter { $0.description.contains("sensor locked") }
    #expect(told.count == 1 && told.allSatisfy { $0.description.hasPrefix("sensor locked: ") }, "\(told)")
  }

  @Test func `a value under automatic control causes no complaint if the profile wants that`() async throws {
    let device = ScriptedControls()
    let night = NightProfile(
      .time(from: 20 * 60, to: 6 * 60), values: [ControlAssignment(name: "auto_exposure", value: "3")])
    let core = try CameraControls.Core(ControlProfile(values: Self.manual, night: night))
    var worker = ControlWorker(core)
    worker.begin(minute: Self.midnight)
    core.device.withLock { $0.device = device }
    worker.follow(.attached)
    #expect(core.status.withLock { $0.complaints }.isEmpty && core.events.take().isEmpty)
    worker.look(at: .zero, minute: Self.noon)
    #expect(device.value("auto_exposure") == 1 && device.value("exposure_time_absolute") == 300)

    let controls = try attached(ControlProfile(), to: device)
    _ = try await controls.change([("auto_exposure", "3"), ("exposure_time_absolute", "77")])
    let again = ScriptedControls()
    controls.attach(again)
    _ = try await controls.list()
    #expect(controls.status.complaints.isEmpty && controls.takeEvents().isEmpty)
  }
}
