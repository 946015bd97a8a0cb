import CLinux
import Capture
import Glibc
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// The sensor lock and the night, by steps of time that the tests make.
@Suite struct SensorLockTests {
  /// The time of a look, of which there are ten a second.
  private static func time(of look: Int) -> Instant { Instant(seconds: Double(look) / 10) }

  @Test func `the lock waits until all values are stable for a second, and fixes them`() throws {
    let device = ScriptedControls()
    device.state.withLock { $0.target = 600 }
    var lock = SensorLock()
    lock.begin(after: 5)
    #expect(!lock.maySettle(pictures: 14) && lock.maySettle(pictures: 15))
    // 156 to 600 in steps of 40 a look, ten looks a second.
    var looks = 0
    while !lock.isSettled(device.controls(), except: [], pictures: 15 + 3 * looks, at: Self.time(of: looks)) {
      looks += 1
    }
    #expect((18...30).contains(looks), "\(looks)")
    #expect(ControlWriter(device: device).write(lock.fix(device.controls(), except: [])).isEmpty)
    #expect(device.value("auto_exposure") == 1 && device.value("exposure_time_absolute") == 600)
    #expect(device.value("white_balance_automatic") == 0 && device.value("exposure_dynamic_framerate") == 0)
    // White balance was never seen to move: what the camera has may be another than what it tells.
    let writes = device.state.withLock { $0.writes }
    #expect(!writes.contains { $0.hasPrefix("white_balance_temperature") })
    #expect(lock.phase == .locked && lock.before[ScriptedControls.autoExposure] == 3)
  }

  @Test func `one that never holds still is fixed after ten seconds`() {
    let device = ScriptedControls()
    var lock = SensorLock()
    lock.begin(after: 0)
    var (time, pictures) = (0.0, 10)
    while !lock.isSettled(device.controls(), except: [], pictures: pictures, at: Instant(seconds: time)) {
      device.state.withLock { $0.target = $0.target == 250 ? 900 : 250 }
      time += 0.1
      pictures += 3
    }
    #expect((9.9...10.2).contains(time))
  }

  @Test func `a camera that pauses while it settles is not locked before it has settled`() {
    let device = ScriptedControls()
    device.state.withLock { $0.target = 600 }
    var lock = SensorLock()
    lock.begin(after: 0)
    var (controls, pictures, look) = (device.controls(), 10, 0)
    while !lock.isSettled(controls, except: [], pictures: pictures, at: Self.time(of: look)) {
      look += 1
      // From 0.5 to 3 seconds no picture comes, and nothing moves.
      guard !(5..<30).contains(look) else { continue }
      controls = device.controls()
      pictures += 3
    }
    // At 3.6 seconds it arrives within what counts as noise.
    #expect((46...48).contains(look), "\(look)")
    #expect(device.value("exposure_time_absolute") == 600)
  }

  @Test(arguments: [(1, 10), (2, 10), (10, 50), (1000, 100)])
  func `five looks at stable values find new pictures before the lock, or ten seconds are over`(
    looksForPicture: Int, settled: Int
  ) {
    let controls = ScriptedControls().controls()
    var lock = SensorLock()
    lock.begin(after: 0)
    var look = 0
    while !lock.isSettled(controls, except: [], pictures: 10 + look / looksForPicture, at: Self.time(of: look)) {
      look += 1
    }
    #expect(look == settled)
  }

  @Test func `pictures that come all at once after a pause count as one look`() {
    let controls = ScriptedControls().controls()
    var lock = SensorLock()
    lock.begin(after: 0)
    let steps: [(pictures: Int, seconds: Double, isSettled: Bool)] = [
      (10, 0, false), (10, 1.2, false), (40, 1.3, false), (40, 1.4, false), (43, 1.5, false), (46, 1.6, false),
      (49, 1.7, false), (52, 1.8, true),
    ]
    for step in steps {
      let isSettled = lock.isSettled(controls, except: [], pictures: step.pictures, at: Instant(seconds: step.seconds))
      #expect(isSettled == step.isSettled, "\(step)")
    }
  }

  @Test func `the lock leaves controls alone that the profile sets otherwise`() {
    let device = ScriptedControls()
    var lock = SensorLock()
    lock.begin(after: 0)
    let targets = lock.fix(device.controls(), except: [ScriptedControls.autoExposure, ScriptedControls.rate])
    #expect(targets.map(\.control.name) == ["white_balance_automatic"])
  }

  @Test func `a lock holds over a replug, and unlocking gives back what was`() async throws {
    let device = ScriptedControls()
    let controls = try CameraControls(ControlProfile(locksSensor: true))
    controls.attach(device)
    let pool = try FramePool(size: PictureSize(width: 64, height: 64))
    for _ in 0..<3000 where controls.status.sensorLock != "locked" {
      guard let frame = pool.checkout(color: .bt709, timestamp: .now(), captured: .now()) else {
        Issue.record("no memory")
        return
      }
      controls.pictures.note(frame.planes, isFullRange: true, at: .now())
      usleep(10_000)
    }
    #expect(device.value("auto_exposure") == 1 && device.value("exposure_time_absolute") == 250)
    #expect(controls.takeEvents().contains { "\($0)".contains("exposure_time_absolute=250") && !$0.isWarning })
    let again = ScriptedControls()
    controls.attach(again)
    let entries = try await controls.list()
    #expect(again.value("auto_exposure") == 1 && again.value("exposure_time_absolute") == 250)
    #expect(entries.first { $0.control.name == "auto_exposure" }?.origin == "lock")
    _ = try await controls.lockSensor(false)
    #expect(again.value("auto_exposure") == 3 && again.value("exposure_dynamic_framerate") == 1)
    #expect(controls.status.sensorLock == "off")
  }

  @Test func `night by the clock goes over midnight, and follows a clock that jumps`() {
    var night = NightDetector(.time(from: 19 * 60 + 30, to: 6 * 60 + 30))
    let steps: [(Int, Bool, Bool)] = [
      (12 * 60, false, false), (19 * 60 + 29, false, false), (19 * 60 + 30, true, true), (23 * 60 + 59, false, true),
      (0, false, true), (6 * 60 + 29, false, true), (6 * 60 + 30, true, false), (3 * 60, true, true),
      (4 * 60, false, true), (12 * 60, true, false),
    ]
    for (minute, turns, isNight) in steps {
      let hasTurned = night.note(minute: minute, luma: nil, at: .zero)
      #expect(hasTurned == turns, "\(minute)")
      #expect(night.isNight == isNight)
    }
    var noon = NightDetector(.time(from: 8 * 60, to: 9 * 60))
    let turns = [9 * 60, 8 * 60].map { noon.note(minute: $0, luma: nil, at: .zero) }
    #expect(turns == [false, true] && noon.isNight)
  }

  @Test func `night by darkness needs a minute of it, and light above the other limit to end`() {
    var night = NightDetector(.darkness(below: 20, above: 30))
    func run(_ luma: Int?, from begin: Int, seconds count: Int) -> Int? {
      for second in begin..<begin + count
      where night.note(minute: 0, luma: luma, at: Instant(seconds: Double(second))) { return second - begin }
      return nil
    }
    #expect(run(100, from: 0, seconds: 10) == nil)
    #expect(night.hasDecided)
    // A minute less a second, then a light that passes.
    #expect(run(10, from: 10, seconds: 60) == nil)
    #expect(run(25, from: 70, seconds: 1) == nil)
    #expect(run(10, from: 71, seconds: 100) == 60 && night.isNight)
    // Between the two, and without pictures, it stays as it is.
    #expect(run(25, from: 200, seconds: 200) == nil)
    #expect(run(nil, from: 400, seconds: 200) == nil)
    #expect(run(31, from: 600, seconds: 100) == 60 && !night.isNight)
    // Begun in the dark, it is night at once.
    night = NightDetector(.darkness(below: 20, above: 30))
    #expect(run(5, from: 0, seconds: 10) == 3)
  }

  @Test func `night's controls are set, and by day what was before`() async throws {
    let device = ScriptedControls()
    let values = [
      ControlAssignment(name: "brightness", value: "40"), ControlAssignment(name: "auto_exposure", value: "1"),
    ]
    let minute = NightDetector.minuteOfDay()
    let isNow = NightProfile.Condition.time(from: (minute + 1430) % 1440, to: (minute + 120) % 1440)
    let notNow = NightProfile.Condition.time(from: (minute + 120) % 1440, to: (minute + 130) % 1440)
    let day = [ControlAssignment(name: "brightness", value: "7")]
    let controls = try CameraControls(ControlProfile(values: day, night: NightProfile(isNow, values: values)))
    controls.attach(device)
    let entries = try await controls.list()
    #expect(controls.status.isNight == true)
    #expect(device.value("brightness") == 40 && device.value("auto_exposure") == 1)
    #expect(entries.first { $0.control.name == "brightness" }?.origin == "night")
    controls.follow(ControlProfile(values: day, night: NightProfile(notNow, values: values)))
    _ = try await controls.list()
    #expect(controls.status.isNight == false)
    #expect(device.value("brightness") == 7 && device.value("auto_exposure") == 3)
  }

  @Test func `a dark room with a picture in five seconds has a brightness all the time`() throws {
    let pool = try FramePool(size: PictureSize(width: 64, height: 64))
    guard let frame = pool.checkout(color: .bt709, timestamp: .zero, captured: .zero) else {
      Issue.record("no memory")
      return
    }
    let watch = PictureWatch()
    watch.isMeasuring = true
    for second in [10.0, 15, 20] { watch.note(frame.planes, isFullRange: true, at: Instant(seconds: second)) }
    #expect(watch.brightness(at: Instant(seconds: 29)) != nil && watch.brightness(at: Instant(seconds: 31)) == nil)
    // A camera that was away for an hour, and goes again.
    watch.note(frame.planes, isFullRange: true, at: Instant(seconds: 3620))
    #expect(watch.brightness(at: Instant(seconds: 3622)) != nil && watch.brightness(at: Instant(seconds: 3624)) == nil)
  }

  @Test func `brightness is the mean of the picture, whatever its range, and of one picture a second`() throws {
    let pool = try FramePool(size: PictureSize(width: 130, height: 70))
    guard let frame = pool.checkout(color: .bt709, timestamp: .zero, captured: .zero) else {
      Issue.record("no memory")
      return
    }
    let planes = frame.planes
    for row in 0..<70 {
      for column in 0..<130 { planes.luma[row * planes.lumaStride + column] = column < 65 ? 16 : 235 }
    }
    #expect((126...129).contains(PictureWatch.meanLuma(of: planes, isFullRange: false)))
    #expect((124...127).contains(PictureWatch.meanLuma(of: planes, isFullRange: true)))
    let watch = PictureWatch()
    watch.note(planes, isFullRange: false, at: Instant(seconds: 10))
    #expect(watch.brightness(at: Instant(seconds: 10)) == nil && watch.pictures == 1)
    watch.isMeasuring = true
    watch.note(planes, isFullRange: false, at: Instant(seconds: 11))
    let first = watch.brightness(at: Instant(seconds: 11))
    memset(planes.luma, 16, planes.lumaStride * 70)
    watch.note(planes, isFullRange: false, at: Instant(seconds: 11.5))
    #expect(watch.brightness(at: Instant(seconds: 11.5)) == first)
    watch.note(planes, isFullRange: false, at: Instant(seconds: 12.1))
    #expect(watch.brightness(at: Instant(seconds: 12.1)) == 0)
    #expect(watch.brightness(at: Instant(seconds: 16)) == nil)
  }
}
