import CLinux
import Capture
import Media
import Platform
import Testing

@Suite struct CaptureClockTests {
  private static let second: Int64 = 1_000_000_000

  @Test func theDriversTimestampIsTaken() {
    var clock = CaptureClock()
    let now = Instant(nanoseconds: 100 * Self.second)
    let taken = Instant(nanoseconds: 100 * Self.second - 20_000_000)
    #expect(clock.stamp(driver: taken, now: now) == taken)
  }

  @Test func withoutOneItIsTheTimeOfDequeuing() {
    var clock = CaptureClock()
    let now = Instant(nanoseconds: 100 * Self.second)
    #expect(clock.stamp(driver: nil, now: now) == now)
  }

  @Test(arguments: [Int64.min, -5, 0, 89, 102, 1_000_000_000_000, Int64.max])
  func aTimestampFarFromNowIsNotBelieved(_ value: Int64) {
    var clock = CaptureClock()
    let now = Instant(nanoseconds: 100 * Self.second)
    let driver = Instant(nanoseconds: value > 1000 || value < -5 ? value : value * Self.second)
    #expect(clock.stamp(driver: driver, now: now) == now)
  }

  @Test func timestampsRiseByATickOfTheRTPClockAtLeast() {
    var clock = CaptureClock()
    var previous: Instant?
    // A driver that repeats itself, jumps back and rounds.
    for offset: Int64 in [0, 0, -5_000_000, 1, 33_000_000, 33_000_001, 32_000_000, 66_000_000] {
      let base = 100 * Self.second
      let time = clock.stamp(
        driver: Instant(nanoseconds: base + offset), now: Instant(nanoseconds: base + 70_000_000))
      if let previous { #expect(time.ticks(rate: 90_000) > previous.ticks(rate: 90_000)) }
      previous = time
    }
  }
}

@Suite struct SequenceCounterTests {
  @Test func gapsAreCountedAcrossTheWrap() {
    var counter = SequenceCounter()
    #expect(counter.note(UInt32.max - 2) == .next(missing: 0))
    #expect(counter.note(UInt32.max - 1) == .next(missing: 0))
    #expect(counter.note(2) == .next(missing: 3))
    #expect(counter.note(3) == .next(missing: 0))
    #expect(counter.note(10) == .next(missing: 6))
  }

  @Test func aDriverThatDoesNotCountLosesNothing() {
    var counter = SequenceCounter()
    for sequence: UInt32 in [0, 0, 0, 5_000_000, 7, 7, 0] { #expect(counter.note(sequence) == .next(missing: 0)) }
  }

  @Test func aNewStreamStartsAnew() {
    var counter = SequenceCounter()
    #expect(counter.note(100) == .next(missing: 0))
    counter.restart()
    #expect(counter.note(3) == .next(missing: 0))
    #expect(counter.note(5) == .next(missing: 1))
  }

  @Test func aPictureThatIsOvertakenIsLateAndOnceOnly() {
    var counter = SequenceCounter()
    #expect(counter.note(.max) == .next(missing: 0))
    #expect(counter.note(1) == .next(missing: 1))
    #expect(counter.note(0) == .late)
    #expect(counter.note(2) == .next(missing: 0))
    // It has come: now the driver counts anew.
    #expect(counter.note(0) == .next(missing: 0))
    #expect(counter.note(1) == .next(missing: 0))
    // What is long ago is no loss that anybody remembers.
    #expect(counter.note(101) == .next(missing: 99))
    #expect(counter.note(2) == .next(missing: 0))
  }

  @Test func whatCameBeforeTheFirstIsNotLate() {
    var counter = SequenceCounter()
    #expect(counter.note(5) == .next(missing: 0))
    #expect(counter.note(4) == .next(missing: 0))
  }
}

@Suite struct DriverTextTests {
  @Test(arguments: [
    ("HD Pro Webcam C920", "HD Pro Webcam C920"),
    ("Caméra", "Caméra"),
    ("\u{1B}[31mred\u{7}", "?[31mred?"),
    ("two\nlines\r\t", "two?lines??"),
    ("right\u{202E}left\u{FEFF}", "right?left?"),
    ("  padded  ", "padded"),
    ("", ""),
  ])
  func nothingThatATerminalObeysIsLeft(_ text: String, _ expected: String) {
    #expect(DriverText.text(Array(text.utf8)) == expected)
  }

  @Test func itEndsAtTheFirstZeroOrTheLimit() {
    #expect(DriverText.text([0x61, 0x62, 0, 0x63]) == "ab")
    #expect(DriverText.text(repeatElement(0x61, count: 100_000)).utf8.count == DriverText.limit)
    #expect(DriverText.text([0x61, 0xff, 0xc3]) == "a??")
  }

  @Test func aFieldOfAKernelStructureIsRead() {
    var capability = v4l2_capability()
    withUnsafeMutableBytes(of: &capability.card) { $0.copyBytes(from: Array("card\u{1B}".utf8)) }
    withUnsafeMutableBytes(of: &capability.driver) { $0.copyBytes(from: repeatElement(0x64, count: 16)) }
    let identity = DeviceIdentity(capability)
    #expect(identity.card == "card?")
    #expect(identity.driver == "dddddddddddddddd")
  }
}

@Suite struct DeviceRoleTests {
  @Test(arguments: [
    (UInt32(0x0400_0001), DeviceRole.camera),  // CAPTURE, STREAMING
    (0x0400_1000, .camera),  // CAPTURE_MPLANE, STREAMING
    (0x0100_0001, .noStreaming),  // CAPTURE, READWRITE
    (0x0400_8000, .codec),  // M2M
    (0x0400_4000, .codec),  // M2M_MPLANE
    (0x0400_3000, .codec),  // CAPTURE_MPLANE, OUTPUT_MPLANE at one node
    (0x0400_0002, .output),
    (0x04a0_0000, .metadata),
    (0x2400_0001, .mediaController),
    (0x0005_0000, .other),
    (0, .other),
  ])
  func aNodeIsWhatItsFlagsSay(_ flags: UInt32, _ expected: DeviceRole) {
    #expect(DeviceRole(capabilities: flags) == expected)
  }

  @Test func flagsOfTheNodeOutweighThoseOfTheDevice() {
    var capability = v4l2_capability()
    capability.capabilities = 0x8400_0001
    capability.device_caps = 0x04a0_0000
    #expect(DeviceIdentity(capability).role == .metadata)
    capability.capabilities = 0x0400_0001
    #expect(DeviceIdentity(capability).role == .camera)
  }
}

@Suite struct OpeningTests {
  @Test func whatIsNoCameraIsRefusedWithAReason() {
    func failure(_ path: String) -> String? {
      let error = #expect(throws: CaptureError.self) {
        _ = try V4L2Camera(path: path, request: FormatRequest())
      }
      return error?.description
    }
    #expect(
      failure("/dev/video9999")
        == "there is no /dev/video9999: is the camera plugged in? `nightjar devices` lists the cameras")
    for path in ["/dev/null", "/etc/passwd", "/tmp"] {
      #expect(failure(path) == "\(path) is not a video device; `nightjar devices` lists the cameras")
    }
    #expect(failure("/dev/\u{0}null")?.hasPrefix("there is no /dev/") == true)
    #expect(failure("/dev/null/video0")?.hasPrefix("there is no /dev/null/video0") == true)
  }

  @Test func refusalsEndWithTheRightKind() {
    #expect(CaptureError.noDevice(path: "").kind == .noInput)
    #expect(CaptureError.noPermission(path: "").kind == .noPermission)
    #expect(CaptureError.busy(path: "", holders: []).kind == .temporary)
    #expect(CaptureError.disconnected(path: "").kind == .unavailable)
    let size = PictureSize(width: 64, height: 32)
    #expect(CaptureError.sourceChanged(path: "", agreed: size, current: nil).kind == .unavailable)
    #expect(CaptureError.sizeNotEncodable(PictureSize(width: 1, height: 1)).kind == .usage)
  }

  @Test(arguments: [("video0", 0), ("video17", 17), ("video", nil), ("video0a", nil), ("videos", nil), ("vbi0", nil)])
  func onlyVideoNodesAreListed(_ name: String, _ number: Int?) {
    #expect(CameraList.number(of: name) == number)
  }

  @Test func thePassedOverAreToldWithTheReasonButNotThoseThatAreNoCameras() {
    func entry(_ path: String, _ obstacle: CaptureError?) -> CameraListing {
      CameraListing(path: path, links: [], identity: nil, capabilities: nil, obstacle: obstacle)
    }
    let list = CameraList(entries: [
      entry("/dev/video0", .notCapture(path: "/dev/video0", name: "codec", role: .codec)),
      entry("/dev/video1", .interFrameCoded([.h264])),
      entry("/dev/video2", nil),
      entry("/dev/video3", .noFormats),
    ])
    #expect(list.firstUsable?.path == "/dev/video2")
    #expect(list.passedOver.map(\.path) == ["/dev/video1"])
    #expect(CameraList(entries: []).firstUsable == nil)
  }

  @Test func aCameraThatCannotBeUsedIsNamed() {
    func complaint(_ obstacle: CaptureError?, card: String? = nil) -> String? {
      let identity = card.map { card in
        var capability = v4l2_capability()
        withUnsafeMutableBytes(of: &capability.card) { $0.copyBytes(from: Array(card.utf8)) }
        return DeviceIdentity(capability)
      }
      return CameraListing(path: "/dev/video3", links: [], identity: identity, capabilities: nil, obstacle: obstacle)
        .complaint
    }
    #expect(complaint(nil, card: "C920") == nil)
    #expect(complaint(.noFormats, card: "C920") == "/dev/video3 (C920): the camera's driver names no pixel format")
    #expect(complaint(.noFormats) == "/dev/video3: the camera's driver names no pixel format")
    let busy = complaint(.busy(path: "/dev/video3", holders: []), card: "C920")
    #expect(busy?.hasPrefix("/dev/video3 (C920) is in use") == true)
    #expect(complaint(.noPermission(path: "/dev/video3"))?.hasPrefix("no permission to open /dev/video3:") == true)
  }
}
