import Foundation
import Platform
import Sound
import TestSupport
import Testing

/// Sound cards as files and mixers describe them.
@Suite struct SoundCardTests {
  @Test func `the nodes that record are listed by number, with the card's name and USB device`() throws {
    let directory = try TemporaryDirectory()
    func write(_ text: String, _ path: String) throws {
      let url = directory.url.appendingPathComponent(path)
      try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: url, atomically: true, encoding: .utf8)
    }
    for name in [
      "pcmC10D0c", "pcmC1D2c", "pcmC1D0c", "pcmC1D0p", "controlC1", "timer", "pcmC1c", "pcmCxD0c", "pcmC1D-1c",
      "pcmC1D0D0c", "pcmC99999999999999999999D0c", "seq",
    ] {
      try write("", "snd/\(name)")
    }
    try write("046d\n", "devices/usb1/1-2/idVendor")
    try write("Mic\u{1B}[2J\n", "devices/usb1/1-2/1-2:1.2/sound/card1/id")
    try FileManager.default.createDirectory(atPath: directory.path("class/sound"), withIntermediateDirectories: true)
    let card = directory.path("devices/usb1/1-2/1-2:1.2/sound/card1")
    try FileManager.default.createSymbolicLink(atPath: "\(card)/device", withDestinationPath: "../..")
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("class/sound/card1"), withDestinationPath: card)
    let nodes = SoundNode.all(in: directory.path("snd"), sysfs: directory.url.path)
    #expect(nodes.map(\.path) == ["/dev/snd/pcmC1D0c", "/dev/snd/pcmC1D2c", "/dev/snd/pcmC10D0c"])
    #expect(nodes.map(\.id) == ["Mic?[2J", "Mic?[2J", "10"])
    #expect(nodes.map { $0.usbDevice?.hasSuffix("/devices/usb1/1-2") == true } == [true, true, false])
    // The camera is another interface of the same device.
    try write("", "devices/usb1/1-2/1-2:1.0/video4linux/video0/name")
    let camera = directory.path("devices/usb1/1-2/1-2:1.0/video4linux/video0")
    #expect(nodes.beside(camera: camera) == nodes.first)
    // The card of a camera with an interface for sound is expected until it is there.
    func isExpected(_ devices: String) -> Bool {
      SoundCard.isExpected(beside: camera, devices: directory.path(devices), sysfs: directory.url.path)
    }
    try write("", "empty/timer")
    try write("0e\n", "devices/usb1/1-2/1-2:1.0/bInterfaceClass")
    #expect(!isExpected("empty"))
    try write("01\n", "devices/usb1/1-2/1-2:1.2/bInterfaceClass")
    #expect(isExpected("empty") && !isExpected("snd") && !isExpected("none"))
    // Its microphone's node comes before the card's control; a loudspeaker alone is a card without a microphone.
    try write("", "halfway/pcmC1D0c")
    try write("", "loudspeaker/pcmC1D0p")
    try write("", "loudspeaker/controlC1")
    #expect(isExpected("halfway") && !isExpected("loudspeaker"))
    #expect(nodes.beside(camera: directory.path("snd")) == nil)
    #expect(try nodes.named(SoundDeviceName("hw:CARD=10,DEV=0")) == nodes.last)
    #expect(SoundNode.all(in: directory.path("none")).isEmpty)
  }

  @Test func `a mixer keeps a card silent by its main switch, or if no input is on`() {
    func control(_ name: String, _ isOn: Bool?, zero: Bool? = nil) -> RecordingControl {
      RecordingControl(name: name, isOn: isOn, isVolumeZero: zero)
    }
    func silencers(_ controls: [RecordingControl]) -> [String?] {
      [controls.switchedOff?.name, controls.turnedDown?.name]
    }
    #expect(silencers([]) == [nil, nil])
    #expect(silencers([control("Mic", true, zero: false)]) == [nil, nil])
    #expect(silencers([control("Mic", false, zero: true)]) == ["Mic", "Mic"])
    #expect(silencers([control("Mic", nil, zero: true)]) == [nil, "Mic"])
    // One input of several is enough, and none of them is named by the microphone's.
    #expect(silencers([control("Line", true, zero: false), control("Mic", false, zero: true)]) == [nil, nil])
    #expect(silencers([control("Line", false), control("Internal Mic", false)]) == ["Internal Mic", nil])
    // The main switch decides, whatever the inputs say.
    #expect(silencers([control("Mic", true), control("Capture", false, zero: false)]) == ["Capture", nil])
    #expect(silencers([control("Mic", false), control("Capture", true, zero: true)]) == [nil, "Capture"])
    // No preamplifier is no silence.
    #expect(silencers([control("Mic Boost", nil, zero: true), control("Capture", true, zero: false)]) == [nil, nil])
    #expect(silencers([control("Mic Boost", nil, zero: true)]) == [nil, nil])
  }

  @Test func `a card that is not there, and a device that records nothing, are told`() throws {
    let nowhere = try SoundDeviceName("hw:CARD=Nowhere")
    #expect(throws: SoundError.noDevice("hw:CARD=Nowhere")) { try TrialRecording(nowhere, channels: 1) }
    #expect(throws: SoundError.noDevice("hw:CARD=Nowhere")) { try SoundCapabilities(of: nowhere) }
    #expect(RecordingControl.all(ofCard: 31).isEmpty)
    let silent = try TrialRecording(SoundDeviceName("null"), channels: 2)
    #expect(silent.level.isDigitalSilence && silent.format == SoundFormat(rate: 48_000, channels: 2))
  }

  @Test func `a driver's time and count are taken where they are plausible`() {
    let now = Instant(nanoseconds: 5_000_000_000)
    func first(_ seconds: Int, _ nanoseconds: Int, _ available: UInt) -> Int64 {
      let (time, times) = PCMCapture.time(
        ofFirst: 480, at: (seconds, nanoseconds, available), rate: 48_000, now: now)
      // It is said whose the time is.
      #expect(times == ((seconds, nanoseconds) == (4, 995_000_000) && available <= 480_000 ? .driver : .wakeUp))
      return time.nanoseconds
    }
    let none = PCMCapture.time(ofFirst: 480, at: nil, rate: 48_000, now: now)
    #expect(none.0.nanoseconds == 4_990_000_000 && none.1 == .wakeUp)
    #expect(first(4, 995_000_000, 960) == 4_975_000_000)
    // A stamp of no clock, or of another one: the count still counts.
    for (seconds, nanoseconds) in [(Int.max, 0), (.min, 0), (4, .max), (4, -1), (0, 0), (6, 0)] {
      #expect(first(seconds, nanoseconds, 960) == 4_980_000_000)
    }
    // More than any card's memory holds.
    for available: UInt in [.max, UInt(Int.max), 48_000 * 11] {
      #expect(first(4, 995_000_000, available) == 4_990_000_000)
    }
  }

  @Test func `a slow card's period gives the time that sound may be late, within a limit`() throws {
    let name = try SoundDeviceName("hw:1")
    func lag(_ samples: UInt) throws -> Int64 {
      try Microphone.lagLimit(period: PCMCapture.period(ofSamples: samples, rate: 48_000, name)).nanoseconds
    }
    #expect(try [lag(0), lag(480), lag(9600), lag(12_000)] == [100_000_000, 100_000_000, 400_000_000, 500_000_000])
    for samples: UInt in [12_001, 48_000, .max] {
      #expect(throws: SoundError.format("hw:1", request: "a period of at most 250 ms")) { try lag(samples) }
    }
  }

  @Test func `a card is found again by its port, and by its name where that is no other webcam's`() throws {
    func card(_ number: Int, _ id: String, _ port: String?, serial: String = "1") -> SoundCard {
      SoundCard(
        device: SoundDeviceName(card: number, device: 0), number: number, deviceNumber: 0, id: id, name: id,
        usbDevice: port, usbIdentity: port.map { _ in "046d:082d:\(serial)" })
    }
    func number(_ former: SoundCard, _ present: [SoundCard]) -> Int? {
      present.same(as: former) { $0.hasPrefix("/webcam") }?.number
    }
    let (first, second) = (card(1, "C920", "/webcam1"), card(2, "C920_1", "/webcam2"))
    // The second one of two webcams of one model comes first, and takes the name of the other.
    let swapped = [card(1, "C920", "/webcam2"), card(2, "C920_1", "/webcam1")]
    #expect(number(first, swapped) == 2 && number(second, swapped) == 1)
    #expect(number(first, [card(1, "C920", "/webcam2")]) == nil)
    // Another webcam of the model at the same port.
    #expect(number(first, [card(1, "C920", "/webcam1", serial: "2")]) == nil)
    // Other cards may move.
    let microphone = card(3, "Mic", "/microphone")
    #expect(number(microphone, [first, card(4, "Mic", "/other")]) == 4)
    #expect(number(card(0, "PCH", nil), [first, card(5, "PCH", nil)]) == 5)
    #expect(number(microphone, [first, second]) == nil)
  }

  @Test func `the lowest bit is digital silence, and the next one is sound`() {
    func level(_ value: Int16) -> SoundLevel? {
      var meter = LevelMeter(rate: 4800, window: 0.5)
      return (0..<2400).map { $0 % 2 == 0 ? value : 0 }.withUnsafeBufferPointer { meter.note($0) }
    }
    #expect(level(0)?.isDigitalSilence == true && level(-1)?.isDigitalSilence == true)
    #expect(level(2)?.isDigitalSilence == false && level(.min)?.isDigitalSilence == false)
  }

  @Test func `the default card is ALSA's, or the first one where ALSA's records nothing`() {
    let places = [(0, 0), (1, 0), (1, 2), (4, 1)].map { (card: $0.0, device: $0.1) }
    func chosen(_ card: Int?, _ device: Int?) -> [Int] {
      let place = card.map { DefaultCard.Place(card: $0, device: device) }
      return places.first(on: place) { $0 }.map { [$0.card, $0.device] } ?? []
    }
    #expect(chosen(1, 2) == [1, 2] && chosen(1, 0) == [1, 0] && chosen(4, nil) == [4, 1])
    // Another device of that card, and a card that only plays, or a sound server.
    #expect(chosen(4, 0) == [4, 1] && chosen(7, 0) == [0, 0] && chosen(nil, nil) == [0, 0])
    #expect([SoundCard]().preferred == nil)
  }
}
