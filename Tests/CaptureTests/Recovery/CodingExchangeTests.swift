import Capture
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// When a camera delivers its own H.264, and when samples.
@Suite struct CodingExchangeTests {
  private static let quarter = Orientation(.quarter)
  private static let start = Instant(nanoseconds: 1_000_000_000)

  /// An exchange that an expectation may change.
  private final class Exchange {
    private var exchange: CodingExchange

    init(_ link: PassThrough) { exchange = CodingExchange(link) }

    var isUnderWay: Bool { exchange.isUnderWay }
    func isOverdue(now: Instant) -> Bool { exchange.isOverdue(now: now) }
    func noteLoss(orientation: Orientation, keeps: Bool = false) {
      exchange.noteLoss(orientation: orientation, isWatched: false, keeps: keeps)
    }
    func end(isCoded: Bool, now: Instant = start) -> CameraEvent? { exchange.end(isCoded: isCoded, now: now) }

    func isDue(isCoded: Bool, orientation: Orientation, isWatched: Bool = false, now: Instant = start) -> Bool {
      exchange.isDue(isCoded: isCoded, orientation: orientation, isWatched: isWatched, now: now)
    }
  }

  private static func link(offersSamples: Bool = true, base: Orientation = .upright) -> PassThrough {
    let link = PassThrough(returnDelay: Duration(seconds: 2)) { _ in }
    link.camera = .init(base: base, offersSamples: offersSamples)
    return link
  }

  @Test func `a rotated picture needs samples, and two seconds after the last rotation it is coded again`() {
    let link = Self.link()
    let exchange = Exchange(link)
    let start = Self.start
    #expect(!exchange.isDue(isCoded: true, orientation: .upright, now: start))
    #expect(exchange.isDue(isCoded: true, orientation: Self.quarter, now: start))
    #expect(link.opensForSamples && exchange.isUnderWay)
    #expect(!exchange.isOverdue(now: start + .milliseconds(900)))
    #expect(exchange.isOverdue(now: start + .milliseconds(1100)))
    #expect(
      exchange.end(isCoded: false, now: start + .milliseconds(300))
        == .coded(isPassedOn: false, reason: "the picture is rotated", after: .milliseconds(300)))
    // Upright for a moment, rotated again, and then upright for good.
    #expect(!exchange.isDue(isCoded: false, orientation: .upright, now: start + .seconds(1)))
    #expect(!exchange.isDue(isCoded: false, orientation: Self.quarter, now: start + .seconds(2)))
    #expect(!exchange.isDue(isCoded: false, orientation: .upright, now: start + .seconds(4)))
    #expect(!exchange.isDue(isCoded: false, orientation: .upright, now: start + .seconds(5)))
    #expect(exchange.isDue(isCoded: false, orientation: .upright, now: start + .seconds(6)))
    #expect(!link.opensForSamples)
    #expect(
      exchange.end(isCoded: true, now: start + .seconds(7))
        == .coded(isPassedOn: true, reason: "", after: .seconds(1)))
    #expect(exchange.end(isCoded: true) == nil)
  }

  @Test func `a viewer of JPEG pictures needs samples`() {
    let exchange = Exchange(Self.link())
    #expect(exchange.isDue(isCoded: true, orientation: .upright, isWatched: true))
  }

  @Test func `who fetches a snapshot every ten seconds makes the camera start a few times, not each time`() {
    let exchange = Exchange(Self.link())
    var (isCoded, starts) = (true, 0)
    for second in 0..<300 {
      let now = Self.start + .seconds(Int64(second))
      guard exchange.isDue(isCoded: isCoded, orientation: .upright, isWatched: second % 10 == 0, now: now) else {
        continue
      }
      isCoded.toggle()
      starts += 1
      _ = exchange.end(isCoded: isCoded, now: now)
    }
    // To samples and back after two, four and eight seconds, and then to samples for good.
    #expect(starts == 7 && !isCoded)
  }

  @Test func `a refused stream stays with samples until the camera is lost`() {
    let link = Self.link()
    let exchange = Exchange(link)
    link.refuse("B pictures")
    link.refuse("another reason")
    #expect(exchange.isDue(isCoded: true, orientation: .upright))
    #expect(
      exchange.end(isCoded: false)
        == .coded(isPassedOn: false, reason: "B pictures", after: .zero))
    for second in 1...9 {
      let now = Self.start + .seconds(Int64(second))
      #expect(!exchange.isDue(isCoded: false, orientation: .upright, now: now))
    }
    exchange.noteLoss(orientation: .upright)
    #expect(link.refusal == nil && !link.opensForSamples)
    exchange.noteLoss(orientation: Self.quarter)
    #expect(link.opensForSamples)
  }

  @Test func `a refusal outlasts a loss during a change, and is forgiven at the next loss`() {
    // The camera is opened for samples, and leaves the bus while it is.
    let link = Self.link()
    let exchange = Exchange(link)
    link.refuse("B pictures")
    #expect(exchange.isDue(isCoded: true, orientation: .upright))
    exchange.noteLoss(orientation: .upright)
    #expect(link.refusal == "B pictures" && link.opensForSamples && !exchange.isUnderWay)
    #expect(exchange.end(isCoded: false) == nil)
    for second in 1...9 {
      let now = Self.start + .seconds(Int64(second))
      #expect(!exchange.isDue(isCoded: false, orientation: .upright, now: now))
    }
    exchange.noteLoss(orientation: .upright)
    #expect(link.refusal == nil && !link.opensForSamples)
  }

  @Test func `a loss during the return to H.264 does not forgive the refusal of the camera that comes instead`() {
    let link = Self.link()
    let exchange = Exchange(link)
    #expect(!exchange.isDue(isCoded: false, orientation: .upright))
    #expect(exchange.isDue(isCoded: false, orientation: .upright, now: Self.start + .seconds(2)))
    #expect(!link.opensForSamples)
    // The search has opened another camera before the loss of the first one is told.
    link.refuse("no H.264 of 1280x720")
    exchange.noteLoss(orientation: .upright)
    #expect(link.refusal == "no H.264 of 1280x720" && link.opensForSamples)
  }

  @Test func `a camera that is only slow keeps its refusal, and one that is lost after a change does not`() {
    let link = Self.link()
    let exchange = Exchange(link)
    link.refuse("B pictures")
    #expect(exchange.isDue(isCoded: true, orientation: .upright))
    #expect(exchange.end(isCoded: false) != nil)
    exchange.noteLoss(orientation: .upright, keeps: true)
    #expect(link.refusal == "B pictures" && link.opensForSamples)
    exchange.noteLoss(orientation: .upright)
    #expect(link.refusal == nil && !link.opensForSamples)
  }

  @Test func `a camera that comes instead of one that was only slow does not inherit its refusal`() {
    let link = Self.link()
    func open(_ identity: String?) { link.camera = .init(base: .upright, offersSamples: true, identity: identity) }
    open("a")
    let exchange = Exchange(link)
    link.refuse("B pictures")
    #expect(exchange.isDue(isCoded: true, orientation: .upright))
    #expect(exchange.end(isCoded: false) != nil)
    exchange.noteLoss(orientation: .upright, keeps: true)
    // The same one again, and one that left the bus while it was opened.
    open("a")
    open(nil)
    #expect(link.refusal == "B pictures")
    open("b")
    #expect(link.refusal == nil)
    #expect(!exchange.isDue(isCoded: false, orientation: .upright))
    #expect(exchange.isDue(isCoded: false, orientation: .upright, now: Self.start + .seconds(2)))
    #expect(!link.opensForSamples)
    link.refuse("another reason")
    open("b")
    #expect(link.refusal == "another reason")
  }

  @Test func `a camera that is mounted upside down codes pictures of that orientation alone`() {
    let half = Orientation(.half)
    let exchange = Exchange(Self.link(base: half))
    #expect(!exchange.isDue(isCoded: true, orientation: half))
    #expect(exchange.isDue(isCoded: true, orientation: .upright))
  }

  @Test func `a camera that offers nothing but H.264 is never opened for samples, and does not rotate`() {
    let link = Self.link(offersSamples: false)
    let exchange = Exchange(link)
    #expect(!exchange.isDue(isCoded: true, orientation: Self.quarter, isWatched: true))
    #expect(link.obstacle(to: Self.quarter, of: "/dev/video0")?.kind == .unavailable)
    #expect(link.obstacle(to: .upright, of: nil) == nil)
  }

  @Test func `requests reach the encoder in the camera, and the bitrate is set again at each opening`() throws {
    let controls = try CameraControls(ControlProfile())
    let camera = ScriptedControls()
    controls.attach(camera)
    controls.code(.bitrate(1_000_000))
    func writes() -> [String] { camera.state.withLock { $0.writes } }
    // A camera that is set up for samples is not asked.
    camera.state.withLock { $0.isCoding = true }
    controls.code(.keyFrame)
    #expect(eventually { writes().count { $0 == "key frame" } == 1 })
    let before = writes().count { $0 == "coded bitrate=1000000" }
    controls.attach(camera)
    #expect(eventually { writes().count { $0 == "coded bitrate=1000000" } == before + 1 })
    #expect(controls.takeEvents().isEmpty)
    camera.state.withLock { $0.refusesCoding = true }
    for _ in 0..<3 { controls.code(.keyFrame) }
    #expect(eventually { writes().count { $0 == "key frame" } == 4 })
    #expect(eventually { controls.takeEvents().map(\.isWarning) == [true] })
  }

  @Test func `the extension unit for H.264 is found among a device's descriptors, whatever these are`() {
    let guid: [UInt8] = [
      0x41, 0x76, 0x9e, 0xa2, 0x04, 0xde, 0xe3, 0x47, 0x8b, 0x2b, 0xf4, 0x34, 0x1a, 0xff, 0x00, 0x3b,
    ]
    let device: [UInt8] = [18, 1] + [UInt8](repeating: 0, count: 16)
    // The unit of another maker, then that of the standard.
    let other: [UInt8] = [27, 0x24, 6, 9] + [UInt8](repeating: 7, count: 23)
    let unit: [UInt8] = [27, 0x24, 6, 12] + guid + [2, 1, 2, 2, 0, 0x21, 0]
    #expect(USBDescriptors(device + other + unit).h264ExtensionUnit == 12)
    #expect(USBDescriptors(device + other).h264ExtensionUnit == nil)
    #expect(USBDescriptors(device + unit.dropLast()).h264ExtensionUnit == nil)
    #expect(USBDescriptors([]).h264ExtensionUnit == nil)
    #expect(USBDescriptors([0, 0x24, 6] + unit).h264ExtensionUnit == nil)
    var generator = SeededGenerator(seed: 4)
    for _ in 0..<500 {
      var bytes = device + unit
      for _ in 0..<3 {
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
      }
      _ = USBDescriptors(bytes).h264ExtensionUnit
    }
  }
}
