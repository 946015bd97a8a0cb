import Appliance
import Platform
import Streaming
import Synchronization
import Testing

/// The budget of two of four processors.
@Suite struct ProcessorBudgetTests {
  /// A host whose time passes, and whose processors are used, as a test says.
  private final class Host: Sendable {
    private struct State {
      var time = Instant.zero + Duration.seconds(1000)
      var used = Duration.zero
    }
    private let state = Mutex(State())

    func makeBudget() -> ProcessorBudget {
      ProcessorBudget(
        share: 0.5, of: 4, clock: { self.state.withLock { $0.time } }, used: { self.state.withLock { $0.used } })
    }

    /// Lets time pass in which the program uses `processors`.
    func pass(_ seconds: Double, using processors: Double) {
      state.withLock {
        $0.time = $0.time + Duration(seconds: seconds)
        $0.used = $0.used + Duration(seconds: seconds * processors)
      }
    }
  }

  /// Takes `full` processors where as many are left, else a quarter of them.
  private func take(
    _ full: Double, of budget: ProcessorBudget, inPlaceOf former: ProcessorGrant? = nil
  ) -> ProcessorGrant {
    budget.take(inPlaceOf: former) { $0 >= full ? full : full / 4 }
  }

  private func isNear(_ value: Double, _ expected: Double) -> Bool { abs(value - expected) < 0.000_001 }

  @Test func `before the first reading, the use is that since the budget was made`() {
    let host = Host()
    let budget = host.makeBudget()
    #expect(budget.room == 2)
    host.pass(1, using: 1.5)
    #expect(isNear(budget.room, 0.5), "\(budget.room)")
    // Too early for a reading.
    budget.measure()
    host.pass(1, using: 0.5)
    #expect(isNear(budget.room, 1), "\(budget.room)")
    host.pass(2, using: 1)
    budget.measure()
    #expect(isNear(budget.room, 1), "\(budget.room)")
    // From here on it is that of the last interval.
    host.pass(4, using: 0.25)
    #expect(isNear(budget.room, 1), "\(budget.room)")
    budget.measure()
    #expect(isNear(budget.room, 1.75), "\(budget.room)")
  }

  @Test func `the second encoder within one interval finds what the first has left`() {
    let host = Host()
    let budget = host.makeBudget()
    host.pass(4, using: 0.5)
    budget.measure()
    #expect(take(1, of: budget).processors == 1)
    #expect(isNear(budget.room, 0.5), "\(budget.room)")
    #expect(take(1, of: budget).processors == 0.25)
    #expect(isNear(budget.room, 0.25), "\(budget.room)")
  }

  @Test func `a grant counts before the first reading too`() {
    let host = Host()
    let budget = host.makeBudget()
    host.pass(1, using: 0.5)
    #expect(take(1, of: budget).processors == 1 && take(1, of: budget).processors == 0.25)
  }

  @Test func `a grant counts until a reading whose whole interval comes after it`() {
    let host = Host()
    let budget = host.makeBudget()
    host.pass(4, using: 0.5)
    budget.measure()
    host.pass(1, using: 0.5)
    _ = take(1, of: budget)
    host.pass(1, using: 1.5)
    // Too early for a reading.
    budget.measure()
    #expect(isNear(budget.room, 0.5), "\(budget.room)")
    host.pass(2, using: 1.5)
    // The reading shows a part of the use: 0.5 for a second, and 1.5 for three.
    budget.measure()
    #expect(isNear(budget.room, 2 - 1.25 - 1), "\(budget.room)")
    host.pass(4, using: 1.5)
    budget.measure()
    #expect(isNear(budget.room, 0.5), "\(budget.room)")
  }

  @Test func `an encoder in the place of another one has that one's processors`() {
    let host = Host()
    let budget = host.makeBudget()
    var grant = take(2, of: budget)
    #expect(budget.room == 0)
    // Its use is in no reading yet.
    grant = take(2, of: budget, inPlaceOf: grant)
    #expect(grant.processors == 2 && budget.room == 0)
    for _ in 0..<2 {
      host.pass(4, using: 2)
      budget.measure()
    }
    #expect(isNear(budget.room, 0), "\(budget.room)")
    // Its use is in the last reading, twice in a row.
    for _ in 0..<2 {
      grant = budget.take(inPlaceOf: grant) { isNear($0, 2) ? 0.5 : 0 }
      #expect(grant.processors == 0.5 && isNear(budget.room, 0), "\(grant) \(budget.room)")
    }
    for _ in 0..<2 {
      host.pass(4, using: 0.5)
      budget.measure()
    }
    #expect(isNear(budget.room, 1.5), "\(budget.room)")
  }

  @Test func `encoders that begin at the same time never get the same processors`() async {
    let budget = Host().makeBudget()
    let taken = await withTaskGroup(of: Double.self) { group in
      for _ in 0..<64 {
        group.addTask { budget.take(inPlaceOf: nil) { $0 >= 0.25 ? 0.25 : 0 }.processors }
      }
      return await group.reduce(0, +)
    }
    #expect(taken == 2 && budget.room == 0)
  }
}
