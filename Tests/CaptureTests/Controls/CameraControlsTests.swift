import CLinux
import Capture
import Dispatch
import Glibc
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// Keeping a camera's controls as they are wanted, on a scripted driver.
@Suite struct CameraControlsTests {
  private func assignments(_ values: [(String, String)]) -> [ControlAssignment] {
    values.map { ControlAssignment(name: $0.0, value: $0.1) }
  }

  @Test func `automatics go off before their manual values, and on after them`() async throws {
    let device = ScriptedControls()
    let controls = try CameraControls(
      ControlProfile(
        values: assignments([
          ("exposure_time_absolute", "300"), ("white_balance_temperature", "3000"), ("brightness", "-7"),
          ("white_balance_automatic", "0"), ("auto_exposure", "Manual Mode"),
        ])))
    controls.attach(device)
    #expect(await comesTrue { device.state.withLock { $0.writes.count == 5 } })
    #expect(
      device.state.withLock { $0.writes } == [
        "white_balance_automatic=0", "auto_exposure=1", "exposure_time_absolute=300",
        "white_balance_temperature=3000", "brightness=-7",
      ])
    #expect(device.value("exposure_time_absolute") == 300 && device.value("white_balance_temperature") == 3000)
    let back = try await controls.change([("auto_exposure", "3"), ("exposure_time_absolute", "400")])
    #expect(device.state.withLock { $0.writes.suffix(2) } == ["exposure_time_absolute=400", "auto_exposure=3"])
    let exposure = try #require(back.first { $0.control.name == "exposure_time_absolute" })
    #expect(exposure.origin == "ctl")
    #expect(exposure.inactivity?.description.contains("auto_exposure=1") == true)
    #expect(controls.takeEvents().isEmpty)
  }

  @Test func `a control that cannot be set causes one warning, and the others are set`() async throws {
    let device = ScriptedControls()
    device.state.withLock { state in
      state.refusals = ["white_balance_automatic": EIO]
      state.alterations = ["exposure_dynamic_framerate": 1]
    }
    let profile = ControlProfile(
      values: assignments([
        ("brigthness", "1"), ("auto_exposure", "2"), ("exposure_time_absolute", "300"), ("serial", "1"),
        ("white_balance_automatic", "0"), ("exposure_dynamic_framerate", "0"), ("brightness", "5"),
      ]))
    let controls = try CameraControls(profile)
    controls.attach(device)
    #expect(await comesTrue { controls.status.complaints.count == 6 })
    let lines = controls.takeEvents().map(\.description)
    for words in [
      "no control 'brigthness'; the nearest is brightness", "auto_exposure cannot be '2': choose 1 (Manual Mode), 3",
      "exposure_time_absolute is inactive while auto_exposure is 3 (Aperture Priority Mode): set auto_exposure=1",
      "serial cannot be set: it is read-only", "the driver refuses white_balance_automatic=0: Input/output error",
      "the driver changed exposure_dynamic_framerate=0 to 1",
    ] {
      #expect(lines.count { $0.contains(words) } == 1, "\(words): \(lines)")
    }
    #expect(device.value("brightness") == 5)
    // The camera comes back: set again, told not again.
    let again = ScriptedControls()
    again.state.withLock { $0.refusals = ["white_balance_automatic": EIO] }
    controls.attach(again)
    #expect(await comesTrue { again.value("brightness") == 5 })
    // The thread is through with it.
    _ = try await controls.list()
    #expect(controls.takeEvents().isEmpty)
  }

  @Test func `a wrong order changes nothing and says why`() async throws {
    let device = ScriptedControls()
    let controls = try CameraControls(ControlProfile())
    await #expect(throws: CameraControlError.absent) { try await controls.list() }
    controls.attach(device)
    let wrong: [([(String, String?)], String)] = [
      ([("brightness", "5"), ("gamma", "1")], "no control 'gamma'"), ([("brightness", "99")], "choose -64 to 64"),
      ([("brightness", "5"), ("exposure_time_absolute", "9")], "set auto_exposure=1 first"),
      ([("serial", "1")], "read-only"), ([("brightness", "1"), ("brightness", "2")], "given twice"),
    ]
    for (values, words) in wrong {
      do {
        _ = try await controls.change(values.map { (name: $0.0, value: $0.1) })
        Issue.record("\(values) was taken")
      } catch {
        #expect("\(error)".contains(words), "\(error)")
      }
    }
    #expect(device.state.withLock { $0.writes }.isEmpty)
    _ = try await controls.change([("exposure_time_absolute", "9"), ("auto_exposure", "1")])
    #expect(device.value("exposure_time_absolute") == 9)
  }

  @Test func `values set by ctl survive a replug, and a reset or another profile undoes them`() async throws {
    let device = ScriptedControls()
    let controls = try CameraControls(ControlProfile(values: assignments([("brightness", "3")])))
    controls.attach(device)
    _ = try await controls.change([("brightness", "20"), ("white_balance_automatic", "0")])
    let again = ScriptedControls()
    controls.attach(again)
    let entries = try await controls.list()
    #expect(entries.first { $0.control.name == "brightness" }?.control.value == 20)
    #expect(again.value("white_balance_automatic") == 0)
    _ = try await controls.change([("brightness", nil), ("white_balance_automatic", nil)])
    #expect(again.value("brightness") == 3 && again.value("white_balance_automatic") == 1)
    _ = try await controls.change([("brightness", "20")])
    controls.follow(ControlProfile(values: assignments([("brightness", "4")])))
    #expect(await comesTrue { again.value("brightness") == 4 })
    #expect(try await controls.list().first { $0.control.name == "brightness" }?.origin == "configuration")
    // The same profile again, as at a reload, takes back what was set meanwhile.
    _ = try await controls.change([("brightness", "20"), ("white_balance_automatic", "0")])
    controls.follow(ControlProfile(values: assignments([("brightness", "4")])))
    _ = try await controls.list()
    #expect(again.value("brightness") == 4 && again.value("white_balance_automatic") == 1)
  }

  @Test(.timeLimit(.minutes(5))) func `a driver that hangs is answered for`() async throws {
    let device = ScriptedControls()
    let controls = try CameraControls(ControlProfile())
    controls.attach(device)
    _ = try await controls.list()
    let gate = DispatchSemaphore(value: 0)
    device.hang.withLock { $0 = gate }
    await withTaskGroup(of: CameraControlError?.self) { group in
      for _ in 0..<8 {
        group.addTask {
          do {
            _ = try await controls.list()
            return nil
          } catch {
            return error as? CameraControlError
          }
        }
      }
      for await error in group { #expect(error == .silent) }
    }
    device.hang.withLock { $0 = nil }
    for _ in 0..<20 { gate.signal() }
    // The orders that nobody waits for any more come first.
    while (try? await controls.list()) == nil { try await Task.sleep(nanoseconds: 10_000_000) }
  }

  @Test func `at most 64 requests with an answer wait for a driver that hangs`() throws {
    // Without a thread that takes them.
    let core = try CameraControls.Core(ControlProfile())
    let taken = (0..<100).map { _ in core.ask(.list(.init())) }
    #expect(taken == (0..<100).map { $0 < 64 })
    #expect(core.ask(.attached) && core.ask(.end))
    #expect(core.take(until: .zero).count == 66)
    #expect(core.ask(.list(.init())))
  }

  @Test func `of the bitrates that wait for a camera's encoder, the newest is left`() throws {
    let core = try CameraControls.Core(ControlProfile())
    for bitrate in [3_000_000, 2_000_000] { core.ask(.code(.bitrate(bitrate))) }
    core.ask(.code(.keyFrame))
    core.ask(.code(.bitrate(1_000_000)))
    let bitrates = core.take(until: .zero).map { if case .code(.bitrate(let bitrate)) = $0 { bitrate } else { 0 } }
    #expect(bitrates == [0, 1_000_000])
  }

  @Test func `a camera that is gone is not held, and its end is the thread's`() async throws {
    var device: ScriptedControls? = ScriptedControls()
    weak let gone = device
    var controls: CameraControls? = try CameraControls(ControlProfile())
    controls?.attach(try #require(device))
    _ = try await controls?.list()
    device = nil
    #expect(await comesTrue { gone == nil })
    await #expect(throws: CameraControlError.absent) { _ = try await controls?.list() }
    controls = nil
  }
}
