import Encoding
import Media
import Testing

/// The choice of the live encoder, without an encoder.
@Suite struct LineupStateTests {
  private static let wide = PictureSize(width: 320, height: 240)
  private static let tall = PictureSize(width: 240, height: 320)
  private static let least = EncodingEffort(rawValue: 0)
  private static let small = EncoderRestrictions(maximumSize: PictureSize(width: 160, height: 120))

  private static func configuration(
    _ size: PictureSize = wide, effort: EncodingEffort? = nil, level: Int? = nil, lookahead: Int = 0
  ) -> EncoderConfiguration {
    var configuration = EncoderConfiguration(
      size: size, frameRate: .thirty, bitrate: 500_000, color: .bt709, lookahead: lookahead, x264Preset: "fast",
      vaapiQuality: level)
    configuration.effort = effort
    return configuration
  }

  private static func state(
    lookahead: Int = 0, _ aspects: EncoderAspects = .both, keepsStandby: Bool = true
  ) -> LineupState {
    LineupState(configuration(lookahead: lookahead), aspects, keepsStandby: keepsStandby)
  }

  private static func next(_ state: LineupState, _ size: PictureSize, isReady: Bool = false) -> LineupState.Shape? {
    var state = state
    return state.next(for: size, isDue: true) { _ in isReady }
  }

  /// A greater effort waits for a key frame that is due, for ten seconds of frames at most; anything else is urgent.
  @Test func `only slots of a greater effort wait for a key frame`() throws {
    let effort = { EncoderRestrictions(effort: EncodingEffort(rawValue: $0)) }
    for (restrictions, waits) in [(effort(6), true), (effort(0), false), (Self.small, false)] {
      var state = Self.state(.scaled)
      _ = state.restrict(restrictions) { _ in false }
      let size = restrictions.size(of: Self.wide)
      let first = state.next(for: size, isDue: false) { _ in true }
      #expect((first == nil) == waits)
      let due = state.next(for: size, isDue: true) { _ in true }
      #expect(due != nil)
    }
    var state = Self.state(.scaled)
    _ = state.restrict(effort(6)) { _ in false }
    var frames = 0
    while state.next(for: Self.wide, isDue: false, isReady: { _ in true }) == nil, frames < 1000 { frames += 1 }
    #expect(frames == 300)
  }

  private static func frameSize(_ state: LineupState, _ size: PictureSize, isReady: Bool = false) -> PictureSize {
    state.frameSize(for: size) { _ in isReady }
  }

  /// Live, left alone, stale, due, and what is to be done.
  @Test(arguments: [
    (LineupState.Kind.hardware, false, false, true, LineupState.HardwareStep.stay),
    (.hardware, true, false, false, .leave), (.hardware, false, true, false, .leave),
    (.software, true, true, true, .stay), (.software, false, true, false, .reopen),
    (.software, false, true, true, .reopen), (.software, false, false, false, .stay),
    (.software, false, false, true, .takeBack),
  ])
  func `hardware is left when its driver hangs, and taken back at a key frame that is due`(
    live: LineupState.Kind, isLeftAlone: Bool, isStale: Bool, isDue: Bool, step: LineupState.HardwareStep
  ) {
    #expect(LineupState.step(live, isLeftAlone: isLeftAlone, isStale: isStale, isDue: isDue) == step)
  }

  @Test func `slots of other colours do not stand by after a rotation`() throws {
    var state = Self.state()
    var restrictions = EncoderRestrictions()
    restrictions.color = .smpte170M
    _ = state.restrict(restrictions) { _ in false }
    let tall = try #require(Self.next(state, Self.tall))
    #expect(tall.configuration.color == .smpte170M)
    var wanted = Self.configuration()
    wanted.color = .smpte170M
    // The former slots have the colours from before.
    #expect(state.change(to: tall, former: Self.configuration()) == .make(wanted))
  }

  @Test func `a picture is another encoder's first one after each change, and once`() throws {
    var state = Self.state()
    #expect(!state.isFirst)
    let changes: [(inout LineupState) throws -> Void] = [
      { $0.noteFailover(hangs: 1) }, { $0.noteRecovery() },
      { state in
        let next = try #require(Self.next(state, Self.tall))
        _ = state.change(to: next, former: Self.configuration())
      },
    ]
    for change in changes {
      try change(&state)
      #expect(state.isFirst)
      state.notePicture()
      #expect(!state.isFirst)
    }
    let counters = state.changes
    #expect((counters.failovers, counters.hangs, counters.recoveries, counters.switches) == (1, 1, 1, 1))
  }

  @Test func `a frame goes to the slots of its size`() throws {
    var state = Self.state()
    #expect(Self.next(state, Self.wide) == nil && state.isSettled(for: Self.wide) && !state.isSettled(for: Self.tall))
    #expect(Self.next(state, PictureSize(width: 640, height: 480)) == nil)
    let next = try #require(Self.next(state, Self.tall))
    #expect(next.configuration == Self.configuration(Self.tall) && next.isRotated)
    #expect(state.change(to: next, former: Self.configuration()) == .keep)
    #expect(Self.next(state, Self.tall) == nil && Self.next(state, Self.wide) != nil)
    #expect(Self.next(Self.state(.one), Self.tall) == nil)
  }

  @Test func `the standby after a rotation depends on the former encoder`() throws {
    let wide = Self.configuration()
    for (lookahead, keeps, former, expected) in [
      (0, true, wide, LineupState.Standby.keep), (0, true, nil, .make(wide)), (0, false, wide, .end),
      (10, true, wide, .warm(Self.configuration(lookahead: 10))),
      (0, true, Self.configuration(effort: Self.least), .make(wide)),
    ] {
      var state = Self.state(lookahead: lookahead, keepsStandby: keeps)
      let next = try #require(Self.next(state, Self.tall))
      #expect(state.firstStandby == (keeps ? .make(next.configuration) : .end))
      #expect(state.standby(insteadOf: next) == (keeps ? .make(next.configuration) : .end))
      #expect(state.change(to: next, former: former) == expected)
    }
    #expect(Self.state(.scaled).firstStandby == .end)
  }

  @Test func `a smaller picture waits for its encoder, and a rotation does not`() throws {
    var state = Self.state()
    let (smallWide, smallTall) = (PictureSize(width: 160, height: 120), PictureSize(width: 120, height: 160))
    #expect(state.restrict(Self.small) { _ in false } == .make(Self.configuration(smallWide)))
    #expect(!state.isSettled(for: Self.wide) && !state.isSettled(for: smallWide))
    #expect(Self.frameSize(state, Self.wide) == Self.wide && Self.frameSize(state, Self.tall) == smallTall)
    #expect(Self.frameSize(state, Self.wide, isReady: true) == smallWide)
    #expect(Self.next(state, Self.wide, isReady: true) == nil)
    let turned = try #require(Self.next(state, smallTall))
    #expect(turned.isRotated && turned.restrictions == Self.small)
    let next = try #require(Self.next(state, smallWide, isReady: true))
    #expect(state.change(to: next, former: Self.configuration()) == .make(Self.configuration(smallTall)))
    let counters = state.changes
    #expect((counters.adaptations, counters.switches) == (1, 0))
    #expect(Self.frameSize(state, Self.wide) == smallWide)
    #expect(state.isSettled(for: smallWide) && !state.isSettled(for: Self.wide))
    // Taken back while the picture is small, before the larger encoder is there.
    #expect(state.restrict(EncoderRestrictions()) { _ in false } == .make(Self.configuration()))
    #expect(Self.frameSize(state, Self.wide) == smallWide)
    #expect(Self.frameSize(state, Self.tall) == Self.tall)
  }

  @Test(arguments: [true, false])
  func `another effort is the live encoder's where it takes that`(takes: Bool) {
    var state = Self.state()
    var asked: [EncodingEffort?] = []
    let standby = state.restrict(EncoderRestrictions(effort: Self.least)) {
      asked.append($0.effort)
      return takes
    }
    #expect(asked == [Self.least])
    let expected = Self.configuration(takes ? Self.tall : Self.wide, effort: Self.least)
    #expect(standby == (takes ? .adopt(expected) : .make(expected)))
    #expect(state.changes.adaptations == (takes ? 1 : 0))
    #expect(!state.isFirst)
    var both = Self.small
    both.effort = Self.least
    // Another size is another encoder, whatever the effort.
    let smaller = Self.configuration(both.size(of: Self.wide), effort: Self.least)
    #expect(state.restrict(both) { _ in true } == .make(smaller))
  }

  @Test func `another effort does not wait for the slots with other threads, which wait for a key frame`() throws {
    var state = Self.state(.scaled)
    var asked: [Int] = []
    let standby = state.restrict(EncoderRestrictions(effort: Self.least, threads: 2)) {
      asked.append($0.threads)
      return $0.effort == Self.least && $0.threads == 1
    }
    #expect(asked == [2, 1])
    var expected = Self.configuration(effort: Self.least)
    expected.threads = 2
    #expect(standby == .make(expected))
    #expect(state.changes.adaptations == 1 && !state.isFirst)
    let first = state.next(for: Self.wide, isDue: false) { _ in true }
    #expect(first == nil)
    let due = state.next(for: Self.wide, isDue: true) { _ in true }
    let next = try #require(due)
    #expect(next.configuration == expected)
    #expect(state.change(to: next, former: Self.configuration(effort: Self.least)) == .end)
    #expect(state.changes.adaptations == 2 && state.isSettled(for: Self.wide))
  }

  @Test(arguments: [true, false])
  func `another quality level is the live hardware's where it takes that`(takes: Bool) {
    var state = Self.state()
    var asked: [Int?] = []
    let standby = state.restrict(EncoderRestrictions(vaapiQuality: 5)) {
      asked.append($0.vaapiQuality)
      return takes
    }
    #expect(asked == [5])
    let expected = Self.configuration(takes ? Self.tall : Self.wide, level: 5)
    #expect(standby == (takes ? .adopt(expected) : .make(expected)))
    #expect(state.changes.adaptations == (takes ? 1 : 0))
    // The same level again is no change.
    #expect(state.restrict(EncoderRestrictions(vaapiQuality: 5)) { _ in takes } == standby)
    #expect(state.changes.adaptations == (takes ? 1 : 0))
  }

  @Test func `a level that the driver refuses afterwards comes from other slots, a better one at a key frame`() throws {
    for (kept, wanted, waits) in [(4, 6, false), (4, 2, true), (nil, 4, false)] as [(Int?, Int, Bool)] {
      var state = Self.state(.scaled)
      _ = state.restrict(EncoderRestrictions(vaapiQuality: wanted)) { _ in true }
      #expect(state.isSettled(for: Self.wide))
      #expect(state.noteRefusal(keeping: kept) == LineupState.Standby.make(Self.configuration(level: wanted)))
      #expect(!state.isSettled(for: Self.wide))
      let first = state.next(for: Self.wide, isDue: false) { _ in true }
      #expect((first == nil) == waits)
      let due = state.next(for: Self.wide, isDue: true) { _ in true }
      let next = try #require(due)
      #expect(next.configuration == Self.configuration(level: wanted))
      #expect(state.change(to: next, former: Self.configuration(level: kept)) == .end)
      #expect(state.isSettled(for: Self.wide) && state.isFirst)
    }
    // Nothing is to be done where that level is requested no longer.
    var state = Self.state(.scaled)
    _ = state.restrict(EncoderRestrictions(vaapiQuality: 6)) { _ in true }
    _ = state.restrict(EncoderRestrictions(vaapiQuality: 4)) { _ in true }
    #expect(state.noteRefusal(keeping: 4) == nil)
    #expect(state.isSettled(for: Self.wide))
  }

  @Test func `slots of another quality level do not stand by after a rotation`() throws {
    var state = Self.state()
    _ = state.restrict(EncoderRestrictions(vaapiQuality: 5)) { _ in true }
    let tall = try #require(Self.next(state, Self.tall))
    #expect(tall.configuration.vaapiQuality == 5)
    #expect(state.change(to: tall, former: Self.configuration(level: 4)) == .make(Self.configuration(level: 5)))
  }

  @Test func `the levels are those of the last picture, and each encoder's refusal is told once`() {
    let levels = HardwareLevels()
    #expect(levels.levels == nil && !levels.isFixed && !levels.takeRefusal())
    levels.note(QualityLevels(count: 7, present: 4))
    #expect(levels.levels == QualityLevels(count: 7, present: 4) && !levels.takeRefusal())
    levels.note(QualityLevels(count: 7, present: 4, isFixed: true))
    let told = [levels.takeRefusal(), levels.takeRefusal()]
    #expect(told == [true, false] && levels.isFixed)
    levels.note(QualityLevels(count: 7, present: 4, isFixed: true))
    #expect(!levels.takeRefusal())
    // An encoder that is opened again does not know yet.
    levels.note(QualityLevels(count: 7, present: 6))
    #expect(levels.isFixed && !levels.takeRefusal())
    levels.note(QualityLevels(count: 7, present: 6, isFixed: true))
    let toldAgain = [levels.takeRefusal(), levels.takeRefusal()]
    #expect(toldAgain == [true, false] && levels.isFixed)
    levels.note(nil)
    #expect(levels.levels == nil && levels.isFixed)
  }

  @Test func `the counters of each encoder are added once`() {
    func counters(imported: Int, copied: Int) -> EncoderCounters {
      var counters = EncoderCounters()
      (counters.imported, counters.copied) = (imported, copied)
      return counters
    }
    let ledger = EncoderLedger()
    ledger.add(counters(imported: 1, copied: 3), since: EncoderCounters())
    ledger.add(counters(imported: 2, copied: 0), since: EncoderCounters())
    ledger.add(counters(imported: 2, copied: 4), since: counters(imported: 1, copied: 3))
    #expect(ledger.counters == counters(imported: 4, copied: 4))
  }
}
